"""What an agent would be told, element by element, and the differences between two such readings as text for people.

Registers nothing that stays: the agent that looks is gone when the reading is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import ndiff
from typing import Any

import attrs

from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host import Harness, Scope
from harness_core.inspect.compare import Element, owner_of
from harness_core.inspect.difference import Change, list_changes
from harness_core.inspect.logged import Owner
from harness_core.models import UserMessage
from harness_core.prompt import AssembleContext, PromptAssembly
from harness_core.prompt.spans import source_text

__all__ = ["LANES", "Told", "difference", "read_assembly", "read_told"]

LANES = ("sections", "contexts", "tools", "variables", "messages", "hooks", "offers")
"""``hooks`` are the listeners that the scope admits, ``offers`` the models and services that it finds."""

_LINES = 12
"""Lines of a difference that are shown of one element; the rest is counted."""
_WIDTH = 160
"""Characters of a line that are shown."""

Lanes = Mapping[str, Sequence[Element]]


@attrs.frozen
class Told:
    """The lanes of one reading."""

    lanes: Lanes

    def __getitem__(self, lane: str) -> Sequence[Element]:
        return self.lanes.get(lane, ())


async def read_told(harness: Harness, scope: Scope | None = None, *, cwd: str, provider: str) -> Told:
    """What a new agent in that scope would be told in its first step, with everything that it could reach there."""
    scope = scope if scope is not None else harness.root
    agent = await harness.create_agent("reader", scope=scope, cwd=cwd, provider=provider)
    try:
        assembly = await harness.assemble(AssembleContext.of(agent))
        step = await harness.prepare_step(agent, ["Hello."])
        lanes = {**read_assembly(assembly), **_reach(harness, agent.scope)}
        lanes["messages"] = _messages(step.messages, step.rejected)
    finally:
        await agent.aclose()
        harness.agents.settings.store.delete("reader")
    return Told(lanes)


def read_assembly(assembly: PromptAssembly) -> dict[str, Sequence[Element]]:
    """The four lanes of an assembly."""
    return {
        "sections": [Element(each.name, source_text(each.text), _owner(each)) for each in assembly.sections],
        "contexts": [Element(each.name, source_text(each.text), _owner(each)) for each in assembly.contexts],
        "tools": [Element(each.name, each.canonical, _owner(each)) for each in assembly.tools],
        "variables": [Element(name, "no value" if text is None else text) for name, text in assembly.variables.items()],
    }


def _owner(record: Any) -> Owner:
    return Owner(plugin=record.origin.plugin if record.origin is not None else None)


def _messages(messages: Iterable[UserMessage], rejected: str | None) -> list[Element]:
    found = [
        Element(f"{each.source.plugin or 'the user'}'s message", each.text, Owner(plugin=each.source.plugin))
        for each in messages
    ]
    return found if rejected is None else [Element("refusal", rejected)]


def _reach(harness: Harness, scope: Scope) -> dict[str, Sequence[Element]]:
    listeners = [
        Element(hook, f"{each.function.__qualname__} of {each.plugin}", Owner(plugin=each.plugin))
        for hook in (*WATERFALLS, *OBSERVERS)
        for each in harness.listeners(hook, scope)
    ]
    offers = [
        Element(f"model provider {name}", type(entry.adapter).__name__, Owner(plugin=entry.origin.plugin))
        for name, entry in harness.models.effective(scope).items()
    ]
    offers += [
        Element(f"service {protocol.__name__}", type(service).__name__)
        for protocol, service in harness.services.effective(scope).items()
    ]
    return {"hooks": listeners, "offers": offers}


def difference(
    before: Told, after: Told, lanes: Iterable[str] = LANES, words: Mapping[str, str] | None = None
) -> list[str]:
    """A text of one or more lines for each change: lane, name and plugin, then the lines that differ.

    ``words`` are other words for ``added``, ``removed``, ``rewritten``, ``moved``.
    """
    chosen = {**_WORDS, **(words or {})}
    return [_described(change, chosen) for lane in lanes for change in list_changes(lane, before[lane], after[lane])]


_WORDS = {"added": "added", "removed": "missing", "rewritten": "changed", "moved": "moved"}


def _described(change: Change, words: Mapping[str, str]) -> str:
    owner = owner_of(change).plugin
    head = f"{change.lane}: {change.name!r}{f' of plugin {owner!r}' if owner else ''} {words[change.kind]}"
    if change.kind == "moved":
        return f"{head} from place {_place(change.places[0])} to place {_place(change.places[1])}"
    before = change.before.text.splitlines() if change.before is not None else []
    after = change.after.text.splitlines() if change.after is not None else []
    lines = [line for line in ndiff(before, after) if line[:1] in "+-"]
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append(f"... and {len(lines) - _LINES} more lines")
    return "\n".join([head, *(f"    {line}" for line in shown)])


def _place(index: int | None) -> str:
    return "nowhere" if index is None else str(index + 1)
