"""The contract of a plugin, as checks that give findings: the one implementation behind the assertions and the command.

Each check is one function from a subject to findings, and brings up harnesses of its own. Nothing here knows how a plugin
is packaged; `harness_core.testing.distribution` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from harness_core.host.findings import Finding
from harness_core.inspect import analyse, logged_requests
from harness_core.models import ScriptedAnswer, ToolSchema
from harness_core.session import read_log
from harness_core.testing._declared import names, settings
from harness_core.testing._process import changed, module_state, process_state
from harness_core.testing._scene import StoppedError, Subject, scene, subject_of, temporary
from harness_core.testing._told import difference
from harness_core.testing.stage import SCRIPTED

__all__ = ["CHECKS", "Check", "Subject", "contract_findings", "subject_of"]

Check: TypeAlias = Callable[[Subject], Awaitable[list[Finding]]]


async def contract_findings(subject: Subject, checks: Iterable[str] | None = None) -> list[Finding]:
    """The findings of some checks, or of all of `CHECKS`; each finding once."""
    found: list[Finding] = []
    for name in checks if checks is not None else CHECKS:
        found += await run_check(CHECKS[name], subject)
    return list(dict.fromkeys(found))


async def run_check(check: Check, subject: Subject) -> list[Finding]:
    """One check; where the plugin does not even come up, or cannot be asked, that is the finding."""
    try:
        return await check(subject)
    except StoppedError as stopped:
        return [stopped.finding]


# --- the checks -------------------------------------------------------------------------------------------------------


async def undoing(subject: Subject) -> list[Finding]:
    """What is there before it is there after it, and nothing else: in every scope, and in the process (D5)."""
    with temporary() as folder:
        async with scene(subject, folder) as here:
            harness = here.harness
            before, owners = await here.told(), harness.root.effects.labels()
            outside = process_state()
            activation = await here.install()
            await here.told()
            try:
                await activation.aclose()
            except Exception as error:
                notes = "\n".join(
                    f"{type(each).__name__}: {each} ({'; '.join(getattr(each, '__notes__', ()))})"
                    for each in (error.exceptions if isinstance(error, ExceptionGroup) else (error,))
                )
                message = f"{subject.source.label} could not be taken out without an error."
                return [subject.finding("does-not-undo-itself", message, _UNDO, details=notes)]
            after = await here.told()
            left = difference(before, after, words={"added": "is still there"})
            labels = [label for label in harness.root.effects.labels() if label not in owners]
            left += [f"registered, and not undone: {label}" for label in labels]
            left += [f"in the process: {line}" for line in changed(outside, process_state())]
    if not left:
        return []
    message = f"{subject.source.label} was installed and taken out again, and it is not as before."
    return [subject.finding("does-not-undo-itself", message, _UNDO, details="\n".join(left))]


_UNDO = "Register through ctx, and undo everything else after the yield, or with ctx.effects."


async def deterministic(subject: Subject) -> list[Finding]:
    """The same state twice, in one harness and in two, gives the same prompt, to the byte (UC-12)."""
    found: list[Finding] = []
    with temporary() as folder:
        async with scene(subject, folder) as here:
            await here.install()
            first, again = await here.told(), await here.told()
        async with scene(subject, folder) as there:
            await there.install()
            elsewhere = await there.told()
    lanes = ("sections", "contexts", "tools", "variables")
    for other, where, compared in (
        (again, "assembled twice in one harness", lanes),
        (elsewhere, "installed in two harnesses at the same time of day", (*lanes, "messages", "hooks", "offers")),
    ):
        texts = difference(first, other, compared)
        if texts:
            message = f"{subject.source.label}, {where} with nothing changed, tells two different things."
            remedy = "Ask the harness's clock for the time, sort what comes from sets and folders, and draw no lots."
            found.append(subject.finding("not-deterministic", message, remedy, details="\n".join(texts)))
    return found


async def scoped(subject: Subject) -> list[Finding]:
    """Installed in one scope, it shows there as it does when it is installed for all, and nowhere else."""
    with temporary() as folder:
        async with scene(subject, folder) as everywhere:
            await everywhere.install()
            wanted = await everywhere.told()
        async with scene(subject, folder) as here:
            inside, beside = here.harness.scope("inside"), here.harness.scope("beside")
            before = await here.told(beside)  # which sees all that the global scope has
            await here.install(inside)
            leaks = difference(before, await here.told(beside), words=_SEEN)
            lacks = difference(wanted, await here.told(inside))
    found: list[Finding] = []
    if leaks:
        message = f"{subject.source.label} was installed in one scope alone, and shows outside of it."
        remedy = "Register through ctx (ctx.prompt, ctx.tools, ...), which stays in the plugin's scope."
        found.append(subject.finding("not-scoped", message, remedy, details="\n".join(leaks)))
    if lacks:
        message = (
            f"{subject.source.label}, installed in one scope, tells an agent there something else than everywhere."
        )
        remedy = "Do not look at the global scope: ctx.scope is the one to work in."
        found.append(subject.finding("not-scoped", message, remedy, details="\n".join(lacks)))
    return found


_SEEN = {"added": "is seen here too"}


async def cache_stable(subject: Subject) -> list[Finding]:
    """A conversation whose requests begin with the one before them, as a prefix cache wants it (UC-29)."""
    with temporary() as folder:
        async with scene(subject, folder) as here:
            await here.install()
            agent = await here.harness.create_agent("conversation", cwd=folder, provider=SCRIPTED)
            agent.scope.tools.register(ToolSchema("look_around", "Look around."), lambda call: "Nothing new.")
            turns = max(1, (subject.steps + 1) // 2)
            for turn in range(turns):
                if turn and subject.between is not None:
                    subject.between(2 * turn + 1)
                here.model.add(ScriptedAnswer(calls=[("look_around", {})]), "Done.")
                here.clock.advance(60)
                result = await agent.run(f"Message {turn + 1}.")
                if not result.ok:
                    facts = result.failure.message if result.failure is not None else result.detail or result.reason
                    message = (
                        f"{subject.source.label}: turn {turn + 1} of an agent ended with {result.reason!r}: {facts}"
                    )
                    return [subject.finding("turn-failed", message, "Repair the listener or provider that raised it.")]
            contents = read_log(here.harness.agents.settings.store, "conversation")
    report = analyse(logged_requests(contents.info, contents.events))
    texts: list[str] = []
    first: Any = None
    for cost in report.breaks:
        assert cost.break_ is not None
        for cause in (cost.break_.cause, *cost.break_.also):
            first = first or cause
            texts.append(
                f"request {cost.request.number} ({cost.request.place}): {cause}\n"
                f"    - {cause.before}\n    + {cause.after}"
            )
    if not texts:
        return []
    message = (
        f"With {subject.source.label}, {len(report.breaks)} of {len(report.requests)} requests do not begin with the "
        "request before them."
    )
    return [
        subject.finding(
            "breaks-cache",
            message,
            "What changes between steps belongs into a context or a message, not into a section or a tool.",
            kind=first.kind,
            entry=first.name,
            details="\n".join(texts),
        )
    ]


async def repeatable(subject: Subject) -> list[Finding]:
    """A second activation is like the first, and two at a time do not disturb each other."""
    with temporary() as folder:
        async with scene(subject, folder) as here:
            activation = await here.install()
            first = await here.told()
            await activation.aclose()
            package = _package(activation.plugin)
            kept = module_state(package)
            try:
                again = await here.install()
                second = await here.told()
                await again.aclose()
                moved = [name for name, text in module_state(package).items() if kept.get(name) != text]
                one, two = here.harness.scope("one"), here.harness.scope("two")
                await here.install(one)
                await here.install(two)
                together = [await here.told(one), await here.told(two)]
            except StoppedError as stopped:
                return [_shared(subject, "installed a second time, does not come up", [stopped.finding.message])]
    found = [
        ("installed a second time, tells something else than the first time", difference(first, second)),
        (
            "active in two scopes at once, tells something else than alone",
            [text for other in together for text in difference(first, other)],
        ),
        ("installed a second time, changes variables of its modules or classes", moved),
    ]
    return [_shared(subject, what, texts) for what, texts in found if texts]


def _shared(subject: Subject, what: str, texts: Iterable[str]) -> Finding:
    remedy = "Keep what an activation knows on the instance, or in harness_setup; modules and classes hold constants."
    details = "\n".join(dict.fromkeys(texts))
    return subject.finding("shared-state", f"{subject.source.label}, {what}.", remedy, details=details)


def _package(plugin: Any) -> str:
    """The package that a plugin's code is in; its module, where that is no part of one."""
    home = plugin.__name__ if inspect.ismodule(plugin) else type(plugin).__module__
    return str(home).partition(".")[0]


CHECKS: dict[str, Check] = {
    "settings": settings,
    "names": names,
    "undoes-itself": undoing,
    "deterministic": deterministic,
    "scoped": scoped,
    "cache-stable": cache_stable,
    "no-shared-state": repeatable,
}
"""The checks by name, in order."""
