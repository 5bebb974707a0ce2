"""Staging: several tables changed in one go, or not at all.

While a change is prepared, what its new owners file is kept beside the tables, which go on as they are; `Staging.commit`
then takes the old owners' entries out and puts the new ones in, without awaiting anything in between. Knows no table's
content.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any, Protocol, TypeVar

import attrs

from harness_core.errors import DuplicateNameError
from harness_core.scopes.effects import Effects, Handle
from harness_core.scopes.origin import Origin
from harness_core.scopes.scope import ScopeNode

__all__ = ["Position", "SetUp", "StagedTable", "Staging", "arranged", "current_staging", "looking", "setting_up"]

Position = Callable[[Origin], "int | None"]
"""The place of a registrant in the order of the plugins; None for who is no plugin of the composition."""

T = TypeVar("T")


class StagedTable(Protocol):
    """What `Staging` asks of a table."""

    def taken(self, scope: ScopeNode, key: Hashable) -> tuple[Any, Origin] | None:
        """The entry under a key, with who filed it."""
        ...

    def insert(self, scope: ScopeNode, key: Any, value: Any, origin: Origin) -> None: ...

    def drop(self, goes: Callable[[Origin], bool]) -> None:
        """Take out every entry whose registrant goes."""
        ...

    def arrange(self, position: Position) -> None:
        """Put all entries in the order in which a fresh start would have filed them."""
        ...

    def snapshot(self) -> Any: ...

    def restore(self, snapshot: Any) -> None: ...

    def announce(self) -> None:
        """Tell the subscribers that something changed; what they raise is their veto."""
        ...


@attrs.frozen
class _Pending:
    table: StagedTable
    scope: ScopeNode
    key: Any
    value: Any
    origin: Origin
    handle: Handle


class Staging:
    """One change in preparation: who goes, who stays, and what the new owners have filed.

    Owners are worked off in the order of a fresh start. Whoever ``waits`` for its turn cannot be seen, as it could not be
    then; `stays` ends the wait, and whoever still waits at the end goes.
    """

    def __init__(self, tables: Sequence[StagedTable], waits: Iterable[Origin]) -> None:
        self.active = True
        self._tables = list(tables)
        # Two activations of one plugin have equal origins: identity tells them apart.
        self._waiting = {id(origin): origin for origin in waits}
        self._displaced: set[int] = set()
        self._pending: list[_Pending] = []

    def goes(self, origin: Origin) -> bool:
        return id(origin) in self._waiting

    def stays(self, origins: Iterable[Origin]) -> bool:
        """Let owners stay; False, and they go, where a new owner has taken a name of theirs."""
        own = {id(origin) for origin in origins}
        if not own.isdisjoint(self._displaced):
            return False
        for each in own:
            self._waiting.pop(each, None)
        return True

    def taken(self, table: StagedTable, scope: ScopeNode, key: Hashable) -> Any:
        """The entry that will be under a key, or None."""
        for each in self._filed(table, scope):
            if each.key == key:
                return each.value
        found = table.taken(scope, key)
        if found is None:
            return None
        if self.goes(found[1]):
            self._displaced.add(id(found[1]))
            return None
        return found[0]

    def file(
        self,
        table: StagedTable,
        scope: ScopeNode,
        owner: Effects,
        key: Any,
        value: Any,
        undo: Callable[[], object],
        label: str,
    ) -> Handle:
        """Keep an entry until the change is made. Its undo must do nothing while the table does not hold it."""
        handle = owner.add(undo, label)
        self._pending.append(_Pending(table, scope, key, value, owner.origin, handle))
        return handle

    def overlay(self, table: StagedTable, scope: ScopeNode, own: dict[Any, Any]) -> dict[Any, Any]:
        """A layer as it will be."""
        kept = {}
        for key, value in own.items():
            found = table.taken(scope, key)
            if found is None or not self.goes(found[1]):
                kept[key] = value
        return kept | {each.key: each.value for each in self._filed(table, scope)}

    def filed(self, table: StagedTable) -> list[Any]:
        """What was filed for a table, in order."""
        return [each.value for each in self._pending if each.table is table and each.handle.active]

    def _filed(self, table: StagedTable, scope: ScopeNode) -> Iterator[_Pending]:
        return (p for p in self._pending if p.table is table and p.scope is scope and p.handle.active)

    def commit(self, position: Position, also: Callable[[], None]) -> Callable[[], None]:
        """Make the change; ``also`` makes what belongs to it elsewhere. Returns what takes the tables back.

        Raises:
            DuplicateNameError: somebody else took a name while the change was prepared; the tables are as they were.
            Exception: what a subscriber or ``also`` raised; the tables are as they were.
        """
        snapshots = [(table, table.snapshot()) for table in self._tables]

        def restore() -> None:
            for table, snapshot in snapshots:
                table.restore(snapshot)

        try:
            for table in self._tables:
                table.drop(self.goes)
            for each in self._pending:
                if each.handle.active:
                    self._insert(each)
            also()
            for table in self._tables:
                table.arrange(position)
            for table in self._tables:
                table.announce()
        except BaseException:
            restore()
            raise
        self.active = False
        return restore

    def _insert(self, each: _Pending) -> None:
        found = each.table.taken(each.scope, each.key)
        if found is not None:
            raise DuplicateNameError(
                f"The {each.handle.label} of {each.origin} was registered in scope {each.scope.name!r} by {found[1]} as "
                "well, while the change was prepared.",
                remedy="Use another name, or remove the other registration; then apply the composition again.",
                entry=each.handle.label,
                layer=each.scope.name,
                names=[str(found[1]), str(each.origin)],
            )
        each.table.insert(each.scope, each.key, each.value, each.origin)

    def discard(self) -> None:
        """Forget the change."""
        self.active = False
        self._pending.clear()


class SetUp:
    """One plugin's set-up under way: the change that it is part of, and whether it looked at what others registered."""

    __slots__ = ("active", "looked", "staging")

    def __init__(self, staging: Staging | None) -> None:
        self.staging = staging
        self.looked = False
        self.active = True


_current: ContextVar[SetUp | None] = ContextVar("harness_set_up", default=None)


def current_staging() -> Staging | None:
    """The change in preparation that a registration made now belongs to."""
    found = _current.get()
    # Tasks that a set-up started carry its context on, also after the change.
    staging = found.staging if found is not None else None
    return staging if staging is not None and staging.active else None


def looking() -> Staging | None:
    """Note that a set-up looks at what others registered; the change whose outcome it is to see."""
    found = _current.get()
    if found is None:
        return None
    found.looked = found.looked or found.active
    return current_staging()


@contextmanager
def setting_up(staging: Staging | None = None) -> Iterator[SetUp]:
    """Code inside is a plugin's set-up, part of ``staging``, or of the change that is being prepared around it."""
    outer = _current.get()
    if staging is None and outer is not None and outer.active:
        staging = outer.staging
    mine = SetUp(staging)
    token = _current.set(mine)
    try:
        yield mine
    finally:
        mine.active = False
        _current.reset(token)
        if outer is not None and mine.looked:
            outer.looked = True


def arranged(items: Iterable[T], origin_of: Callable[[T], Origin], position: Position) -> list[T]:
    """Items in the order of their registrants; those of nobody's stay before, or behind, all of them as they are."""
    keyed: list[tuple[float, T]] = []
    begun = False
    for item in items:
        place = position(origin_of(item))
        begun = begun or place is not None
        keyed.append((place if place is not None else inf if begun else -inf, item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]
