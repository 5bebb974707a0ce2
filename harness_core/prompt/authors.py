"""Authors: which listener is behind what in an assembly is not as the providers had made it.

Reads what the assembly carries of its own making. It is exact for records and variables, by identity and by value; for
what was dropped or moved it names a listener only where a single one changed that list.
"""

from __future__ import annotations

from typing import Any

import attrs

from harness_core.prompt._lanes import Edit, author_of
from harness_core.prompt.records import PromptAssembly
from harness_core.scopes import Origin

__all__ = ["Author", "Authors"]

LANES = ("sections", "contexts", "tools")


@attrs.frozen
class Author:
    """A listener, and the line of its code that made the change."""

    listener: Any
    line: int

    @property
    def origin(self) -> Origin:
        """Whose the listener is: what stands for a record that no plugin registered."""
        by = self.listener
        return Origin(plugin=by.plugin, distribution=by.distribution, version=by.version, scope=by.scope.name)


class Authors:
    """Answers for one assembly that came out of `assemble`."""

    def __init__(self, assembly: PromptAssembly) -> None:
        given = getattr(assembly, "_given", None)
        self._assembly = assembly
        self._listeners: tuple[Any, ...] = assembly._listeners if given is not None else ()
        self._given: dict[str, list[Any]] = dict(zip(LANES, given[:3], strict=True)) if given is not None else {}
        self._values: dict[str, str | None] = given[3] if given is not None else {}
        self._ids = {lane: {id(record) for record in records} for lane, records in self._given.items()}

    def of_record(self, lane: str, record: object) -> Author | None:
        """Who put the record into the list; None where it is the one that its provider had made."""
        if not self._listeners or id(record) in self._ids[lane]:
            return None
        for edit in reversed(self._edits(lane)):
            if any(added is record for added in edit.added):
                return self._author(edit)
        return None

    def of_removal(self, lane: str, record: Any) -> Author | None:
        """Who took a record of that name out of the list; None where that cannot be told."""
        for edit in reversed(self._edits(lane)):
            if any(removed.name == record.name for removed in edit.removed):
                return self._author(edit)
        return self.of_list(lane)

    def of_variable(self, name: str) -> Author | None:
        """Who set the variable to a value that its provider had not given."""
        variables = self._assembly.variables
        if not self._listeners or (
            name in variables and name in self._values and variables[name] == self._values[name]
        ):
            return None
        edit = getattr(variables, "edits", {}).get(name)
        return self._author(edit) if edit is not None else None

    def given(self, lane: str, name: str) -> Any:
        """The first record of that name that a provider had made, or the value of that variable; None if there was none."""
        if lane == "variables":
            return self._values.get(name)
        return next((record for record in self._given.get(lane, ()) if record.name == name), None)

    def dropped(self, lane: str) -> list[Any]:
        """The records that providers had made and whose name is not in the list any more."""
        names = {record.name for record in getattr(self._assembly, lane)}
        return [record for record in self._given.get(lane, ()) if record.name not in names]

    def moved(self, lane: str) -> bool:
        """Do the names that are left stand in another order than the providers' records did?"""
        given = self._given.get(lane)
        if given is None:
            return False
        now = [record.name for record in getattr(self._assembly, lane)]
        kept = set(now)
        before = [record.name for record in given if record.name in kept]
        known = set(before)
        return before != [name for name in now if name in known]

    def of_list(self, lane: str) -> Author | None:
        """Who changed the list, where it was one listener alone."""
        authors = [author for edit in self._edits(lane) if (author := self._author(edit)) is not None]
        if authors and all(author.listener is authors[0].listener for author in authors):
            return authors[-1]
        return None

    def _edits(self, lane: str) -> list[Edit]:
        return list(getattr(getattr(self._assembly, lane), "edits", ()))

    def _author(self, edit: Edit) -> Author | None:
        found = author_of(edit, self._listeners)
        return Author(*found) if found is not None else None
