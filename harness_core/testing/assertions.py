"""The contract of a plugin as assertions: coroutine functions that raise with what is different, line by line.

In an async test they are awaited, under any runner; a sync test says ``anyio.run(assert_undoes_itself, Weather)``. Decides
nothing: the checks are in `harness_core.testing.contract`. PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio

from harness_core._text import quoted_list
from harness_core.errors import HarnessError
from harness_core.host.findings import Finding, Severity
from harness_core.testing._scene import Between
from harness_core.testing.contract import CHECKS, Check, Subject, contract_findings, run_check, subject_of

__all__ = [
    "assert_cache_stable",
    "assert_deterministic",
    "assert_scoped",
    "assert_undoes_itself",
    "plugin_contract",
]


async def assert_undoes_itself(
    plugin: Any, *, config: Mapping[str, Any] | Any = None, beside: Iterable[Any] = ()
) -> None:
    """Installed and taken out again, the plugin leaves nothing: in no lane, no scope, and nowhere in the process.

    Args:
        plugin: a class, an instance, a module, the name of an installed plugin, or a `PluginUse`.
        config: its settings, a mapping or an instance of its Config.
        beside: plugins that it needs; they are there before it, and stay.

    Raises:
        AssertionError: it does leave something; the message says what.
    """
    await _assert("undoes-itself", subject_of(plugin, config=config, beside=tuple(beside)))


async def assert_deterministic(
    plugin: Any, *, config: Mapping[str, Any] | Any = None, beside: Iterable[Any] = ()
) -> None:
    """The same state gives the same prompt, to the byte, twice in one harness and in another one.

    Arguments as for `assert_undoes_itself`.

    Raises:
        AssertionError: it does not.
    """
    await _assert("deterministic", subject_of(plugin, config=config, beside=tuple(beside)))


async def assert_cache_stable(
    plugin: Any,
    *,
    steps: int = 6,
    between: Between | None = None,
    config: Mapping[str, Any] | Any = None,
    beside: Iterable[Any] = (),
) -> None:
    """In a conversation of so many steps, each request begins with the one before, as a prefix cache wants it.

    A turn has two steps, one of which calls a tool; a minute passes before each turn.

    Args:
        steps: how many requests the conversation has at least.
        between: called before each turn but the first with the number of its first step; changes the world that the
            plugin looks at.

    Other arguments as for `assert_undoes_itself`.

    Raises:
        AssertionError: a request does not, or a turn fails; the message says what changed, and by whom.
    """
    subject = subject_of(plugin, config=config, beside=tuple(beside), steps=steps, between=between)
    await _assert("cache-stable", subject)


async def assert_scoped(plugin: Any, *, config: Mapping[str, Any] | Any = None, beside: Iterable[Any] = ()) -> None:
    """Installed in one scope, the plugin shows there as it would everywhere, and nowhere else.

    Arguments as for `assert_undoes_itself`.

    Raises:
        AssertionError: it does not.
    """
    await _assert("scoped", subject_of(plugin, config=config, beside=tuple(beside)))


async def _assert(check: str, subject: Subject) -> None:
    __tracebackhide__ = True
    raise_on(await contract_findings(subject, [check]))


def raise_on(findings: Iterable[Finding]) -> None:
    """Fail with what is worse than a note.

    Raises:
        AssertionError: there is such a finding.
    """
    __tracebackhide__ = True
    texts = [told(finding) for finding in findings if finding.severity is not Severity.NOTE]
    if texts:
        raise AssertionError("\n\n".join(texts))


def told(finding: Finding) -> str:
    """A finding as the message of an assertion."""
    details = [f"  {line}" for line in (finding.details or "").splitlines()]
    return "\n".join([f"{finding.code}: {finding.message}", *details, f"  {finding.remedy}"])


def plugin_contract(
    plugin: Any,
    *,
    config: Mapping[str, Any] | Any = None,
    beside: Iterable[Any] = (),
    steps: int = 6,
    skip: Iterable[str] = (),
) -> Callable[[str], None]:
    """The whole contract of one plugin as a parametrised test: ``test_contract = plugin_contract(Weather)``.

    The test is synchronous and runs a loop of its own, so that it needs no plugin of pytest's. By the name under which it
    is installed, a plugin is held to the checks of its distribution as well (`harness plugin check`).

    Args:
        steps: see `assert_cache_stable`.
        skip: names of checks that do not apply.

    Other arguments as for `assert_undoes_itself`.

    Raises:
        HarnessError: ``skip`` names something that is no check.
    """
    import pytest

    checks: dict[str, Check] = dict(CHECKS)
    if isinstance(plugin, str):
        from harness_core.testing.distribution import DISTRIBUTION_CHECKS

        checks = {**DISTRIBUTION_CHECKS, **checks}
    left_out, plugins = tuple(skip), tuple(beside)
    unknown = [name for name in left_out if name not in checks]
    if unknown:
        raise HarnessError(
            f"There is no check called {unknown[0]!r}.", remedy=f"Known: {quoted_list(checks)}.", known=tuple(checks)
        )

    @pytest.mark.parametrize("check", [name for name in checks if name not in left_out])
    def test(check: str) -> None:
        __tracebackhide__ = True
        subject = subject_of(plugin, config=config, beside=plugins, steps=steps)
        raise_on(anyio.run(run_check, checks[check], subject))

    return test
