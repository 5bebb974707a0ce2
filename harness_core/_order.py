"""Stable topological order: constraints are kept, and whatever they leave open stays in the given order."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

__all__ = ["OrderCycleError", "stable_order"]

T = TypeVar("T", bound=Hashable)


class OrderCycleError(Exception):
    """The constraints contradict each other; ``cycle`` lists the members, the first one repeated at the end."""

    def __init__(self, cycle: Sequence[object]) -> None:
        super().__init__(cycle)
        self.cycle = tuple(cycle)


def stable_order(items: Sequence[T], predecessors: Mapping[T, Iterable[T]]) -> list[T]:
    """The items such that each comes after its predecessors, otherwise as early as it stands in ``items``.

    Predecessors that are not among the items are ignored.

    Raises:
        OrderCycleError: there is no such order.
    """
    position = {item: index for index, item in enumerate(items)}
    sorter = TopologicalSorter({item: [p for p in predecessors.get(item, ()) if p in position] for item in items})
    try:
        sorter.prepare()
    except CycleError as error:
        raise OrderCycleError(list(reversed(error.args[1]))) from None
    result: list[T] = []
    ready: list[int] = []
    while sorter.is_active():
        for item in sorter.get_ready():
            heapq.heappush(ready, position[item])
        item = items[heapq.heappop(ready)]
        result.append(item)
        sorter.done(item)
    return result
