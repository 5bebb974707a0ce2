"""The registry's storage: one layer of tables for each scope that has registered something (SCOPE-16, SCOPE-22)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness_core.prompt._entries import SuppressorEntry, TextEntry, ToolEntry, VariableEntry

__all__ = ["Layer", "VariableTable"]


class VariableTable(dict[str, VariableEntry]):
    """Variables by name, with iteration that follows later insertions and removals (ASM-05).

    ``epoch`` moves when the table drains: an iteration under way then ends and never sees later insertions (ASM-06).
    """

    __slots__ = ("epoch",)

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0

    def remove(self, name: str) -> None:
        del self[name]
        if not self:
            self.epoch += 1

    def live(self, after: int = -1, epoch: int | None = None) -> Iterator[VariableEntry]:
        """Entries with a serial number above ``after``, each looked up when it is due."""
        started = self.epoch if epoch is None else epoch
        while self.epoch == started:
            entry = next((entry for entry in self.values() if entry.number > after), None)
            if entry is None:
                return
            after = entry.number
            yield entry


class Layer:
    """The five tables of one scope; ``generation`` moves with each change of any of them."""

    __slots__ = ("contexts", "generation", "sections", "suppressors", "tools", "variables")

    def __init__(self) -> None:
        self.generation = 0
        self.sections: dict[str, TextEntry] = {}
        self.contexts: dict[str, TextEntry] = {}
        self.variables = VariableTable()
        self.tools: dict[ToolEntry, ToolEntry] = {}
        self.suppressors: dict[SuppressorEntry, SuppressorEntry] = {}

    def tables(self) -> tuple[tuple[str, dict[Any, Any]], ...]:
        """All tables by name; what has no name is its own key."""
        return (
            ("sections", self.sections),
            ("contexts", self.contexts),
            ("variables", self.variables),
            ("tools", self.tools),
            ("suppressors", self.suppressors),
        )

    def copy(self) -> Layer:
        """A layer of its own with the same entries."""
        other = Layer()
        other.generation = self.generation
        for (_, mine), (_, theirs) in zip(self.tables(), other.tables(), strict=True):
            theirs.update(mine)
        return other

    @property
    def empty(self) -> bool:
        return not (self.sections or self.contexts or self.variables or self.tools or self.suppressors)
