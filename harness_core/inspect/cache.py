"""The prefix cache: how much of each request repeats the one before, where the prefix breaks, by whom, and what it costs.

A prediction from a log alone. How a service lays a prompt out and in what units it caches are parameters (UC-29), and so
are prices and the way to count tokens; nothing here knows a vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from harness_core.errors import HarnessError
from harness_core.inspect.cause import Cause, causes
from harness_core.inspect.logged import LoggedRequest
from harness_core.inspect.wire import LANES, Layout
from harness_core.models import Usage

__all__ = ["Break", "CacheModel", "CacheReport", "PluginCost", "Prices", "RequestCost", "analyse"]


def _lanes(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _all_lanes(_: Any, __: Any, value: tuple[str, ...]) -> None:
    if sorted(value) != sorted(LANES):
        raise HarnessError(
            f"A render order names each of {', '.join(LANES)} once, not {', '.join(value) or 'nothing'}.",
            entry="order",
            known=LANES,
        )


@attrs.frozen(kw_only=True)
class CacheModel:
    """How a service caches.

    ``unit``: tokens that are kept or dropped together; ``minimum``: fewer are not cached at all; ``order``: what stands
    before what in the prompt that the model reads.
    """

    unit: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    minimum: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    order: tuple[str, ...] = attrs.field(default=LANES, converter=_lanes, validator=_all_lanes)

    def cached(self, tokens: float) -> int:
        """Whole units of so many equal tokens."""
        units = int(tokens) // self.unit * self.unit
        return units if units >= self.minimum else 0


@attrs.frozen(kw_only=True)
class Prices:
    """Per million tokens, in whatever currency."""

    input: float = 0.0
    cached: float = 0.0
    output: float = 0.0

    def of(self, input_tokens: float, cached_tokens: float, output_tokens: float) -> float:
        fresh = max(0.0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * self.cached + output_tokens * self.output) / 1_000_000


@attrs.frozen(kw_only=True)
class Break:
    """Where a request stops beginning like the one before.

    ``offset`` is the first byte that differs, of the prompt in render order; ``cause`` what stands there, ``also`` what else
    is different. ``lost_tokens`` would have been in the cache otherwise, ``lost`` is what they cost.
    """

    offset: int
    lane: str
    cause: Cause
    also: tuple[Cause, ...] = ()
    lost_tokens: int = 0
    lost: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "lane": self.lane,
            "cause": self.cause.to_json(),
            "also": [each.to_json() for each in self.also],
            "lost_tokens": self.lost_tokens,
            "lost": self.lost,
        }


@attrs.frozen(kw_only=True)
class RequestCost:
    """One request. Bytes are of the text that the model reads; tokens are counted by the service where it said so."""

    request: LoggedRequest
    size: int
    repeated: int
    tokens: int
    counted: bool
    """Did the service count the tokens? They are estimated otherwise."""
    repeated_tokens: int
    predicted: int
    reported: int | None
    cost: float
    idle: float | None = None
    """Seconds since the request before: caches do not keep things for ever."""
    break_: Break | None = None

    def to_json(self) -> dict[str, Any]:
        dispatch = self.request.dispatch
        return {
            "number": self.request.number,
            "turn": dispatch.turn,
            "step": dispatch.step,
            "attempt": dispatch.attempt,
            "seconds_since_previous": self.idle,
            "bytes": self.size,
            "repeated_bytes": self.repeated,
            "tokens": self.tokens,
            "tokens_counted_by_service": self.counted,
            "repeated_tokens": self.repeated_tokens,
            "predicted_cached_tokens": self.predicted,
            "reported_cached_tokens": self.reported,
            "cost": self.cost,
            "break": self.break_.to_json() if self.break_ is not None else None,
        }


@attrs.frozen(kw_only=True)
class PluginCost:
    """What a plugin's changes cost over a log."""

    plugin: str
    version: str | None
    breaks: int
    lost_tokens: int
    lost: float
    things: tuple[str, ...]
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class CacheReport:
    """All requests of a log, and the plugins by what their changes cost, the dearest first."""

    requests: tuple[RequestCost, ...]
    ranking: tuple[PluginCost, ...]
    models: dict[str, CacheModel]

    @property
    def breaks(self) -> list[RequestCost]:
        return [each for each in self.requests if each.break_ is not None]

    @property
    def cost(self) -> float:
        return sum(each.cost for each in self.requests)

    def to_json(self) -> dict[str, Any]:
        return {
            "requests": [each.to_json() for each in self.requests],
            "ranking": [each.to_json() for each in self.ranking],
            "models": {name: attrs.asdict(model) for name, model in self.models.items()},
            "cost": self.cost,
        }


TokenCounter = Callable[[str], int]


def analyse(
    requests: Sequence[LoggedRequest],
    *,
    model: CacheModel | None = None,
    providers: dict[str, CacheModel] | None = None,
    prices: Prices | None = None,
    count_tokens: TokenCounter | None = None,
) -> CacheReport:
    """Predict what each request of a log finds in the cache.

    Args:
        model: how services cache that ``providers`` does not name.
        providers: how each service caches, by provider name.
        count_tokens: a tokenizer for texts; without one, tokens are in proportion to what the service counted, or to bytes.
    """
    default = model if model is not None else CacheModel()
    known = providers if providers is not None else {}
    costs: list[RequestCost] = []
    previous: tuple[LoggedRequest, Layout, RequestCost] | None = None
    for request in requests:
        cache = known.get(str(request.header.config.provider), default)
        layout = Layout.of(request, cache.order, previous[1] if previous is not None else None)
        cost = _cost(request, layout, previous, cache, prices or Prices(), count_tokens)
        costs.append(cost)
        previous = (request, layout, cost)
    used = {str(each.request.header.config.provider) for each in costs}
    return CacheReport(
        requests=tuple(costs), ranking=_ranked(costs), models={name: known.get(name, default) for name in sorted(used)}
    )


def _cost(
    request: LoggedRequest,
    layout: Layout,
    previous: tuple[LoggedRequest, Layout, RequestCost] | None,
    cache: CacheModel,
    prices: Prices,
    count_tokens: TokenCounter | None,
) -> RequestCost:
    usage = request.usage or Usage()
    counted = usage.input_tokens
    tokens = counted if counted is not None else layout.estimate(layout.size, count_tokens)
    repeated = repeated_tokens = predicted = full = 0
    idle = None
    break_ = None
    if previous is not None:
        old_request, old, old_cost = previous
        idle = (request.event.time_ms - old_request.event.time_ms) / 1000
        repeated, lane = layout.shared_with(old)
        full = old_cost.tokens
        whole = repeated >= old.size
        repeated_tokens = full if whole else min(full, old.tokens_before(repeated, old_cost.tokens, count_tokens))
        predicted = min(cache.cached(repeated_tokens), tokens)
        if not whole:
            break_ = _break(old_request, request, repeated, lane)
    if break_ is not None:
        lost = max(0, cache.cached(full) - predicted)
        break_ = attrs.evolve(break_, lost_tokens=lost, lost=lost * (prices.input - prices.cached) / 1_000_000)
    cached = usage.cached_tokens if usage.cached_tokens is not None else predicted
    return RequestCost(
        request=request,
        size=layout.size,
        repeated=repeated,
        tokens=tokens,
        counted=counted is not None,
        repeated_tokens=repeated_tokens,
        predicted=predicted,
        reported=usage.cached_tokens,
        cost=prices.of(tokens, cached, usage.output_tokens or 0),
        idle=idle,
        break_=break_,
    )


def _break(old: LoggedRequest, new: LoggedRequest, offset: int, lane: str) -> Break | None:
    found = causes(old, new)
    settings = found.pop("settings", [])
    ordered = [*settings, *found.pop(lane, [])]
    ordered += [cause for listed in found.values() for cause in listed]
    if not ordered:
        return None
    return Break(
        offset=0 if settings else offset,
        lane=ordered[0].lane,
        cause=ordered[0],
        also=tuple(ordered[1:]),
    )


def _ranked(costs: Sequence[RequestCost]) -> tuple[PluginCost, ...]:
    by_plugin: dict[str, list[Break]] = {}
    for cost in costs:
        if cost.break_ is not None:
            by_plugin.setdefault(cost.break_.cause.owner.name, []).append(cost.break_)
    ranked = [
        PluginCost(
            plugin=plugin,
            version=next((each.cause.owner.version for each in breaks if each.cause.owner.version), None),
            breaks=len(breaks),
            lost_tokens=sum(each.lost_tokens for each in breaks),
            lost=sum(each.lost for each in breaks),
            things=tuple(dict.fromkeys(_thing(each.cause) for each in breaks)),
            advice=_advice([each.cause for each in breaks]),
        )
        for plugin, breaks in by_plugin.items()
    ]
    return tuple(sorted(ranked, key=lambda each: (-each.lost, -each.lost_tokens, -each.breaks, each.plugin)))


def _thing(cause: Cause) -> str:
    return f"{cause.kind} {cause.name}" + (f" in {cause.within}" if cause.within else "")


CHANGES_OFTEN = 2
"""Changes of one thing in one session from which on it does not belong where it stands."""


def _advice(listed: Sequence[Cause]) -> str:
    """What would keep the prefix whole (UC-12)."""
    counted: dict[tuple[str, str, str | None], int] = {}
    for cause in listed:
        counted[cause.kind, cause.name, cause.within] = counted.get((cause.kind, cause.name, cause.within), 0) + 1
    said = []
    for (kind, name, within), times in counted.items():
        if times < CHANGES_OFTEN:
            continue
        if kind == "section":
            said.append(f"section {name!r} changed {times} times: make it a context")
        elif kind == "variable":
            said.append(f"variable {name!r} changed {times} times: use it in a context instead of section {within!r}")
        elif kind == "tool":
            said.append(f"tool {name!r} changed {times} times: keep tools as they are within a session")
    return "; ".join(said)
