"""A model request in neutral form: configuration, header and messages. Knows neither the log nor any vendor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from harness_core._json import FrozenDict, JsonObject, canonical, freeze_object
from harness_core.models.messages import Message
from harness_core.models.schema import ToolSchema

__all__ = ["CallConfig", "ModelRequest", "RequestHeader"]


def _number(value: float | None) -> float | None:
    """One form for equal numbers, so that equal configurations are also equal byte for byte."""
    return None if value is None else float(value)


def _stops(value: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _extra(value: JsonObject) -> FrozenDict:
    return freeze_object(value, what="CallConfig.extra")


def _names(value: Iterable[str]) -> frozenset[str]:
    return frozenset(value)


def _tools(value: Iterable[ToolSchema]) -> tuple[ToolSchema, ...]:
    return tuple(value)


def _text_of(value: FrozenDict) -> str:
    return canonical(value) if value else ""


@attrs.frozen(kw_only=True)
class CallConfig:
    """Which model is called, and how. ``None`` means: not said, so that the adapter may fill it in (HDR-05)."""

    provider: str | None = None
    model: str | None = None
    temperature: float | None = attrs.field(default=None, converter=_number)
    top_p: float | None = attrs.field(default=None, converter=_number)
    max_tokens: int | None = None
    effort: str | None = None
    stop: tuple[str, ...] | None = attrs.field(default=None, converter=_stops)
    seed: int | None = None
    extra: FrozenDict = attrs.field(factory=FrozenDict, converter=_extra, eq=_text_of)
    """Fields that only one service knows; the adapter decides what it takes of them."""

    def given(self) -> dict[str, Any]:
        """What is said, by field."""
        values = {field.name: getattr(self, field.name) for field in attrs.fields(CallConfig)}
        return {name: value for name, value in values.items() if value is not None and (value or name != "extra")}

    def to_json(self) -> dict[str, Any]:
        data = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(type(self))
            if field.name != "extra" and getattr(self, field.name) is not None
        }
        if "stop" in data:
            data["stop"] = list(data["stop"])
        if self.extra:
            data["extra"] = self.extra
        return data

    @classmethod
    def from_json(cls, data: JsonObject) -> CallConfig:
        return cls(**data)


@attrs.frozen(kw_only=True)
class RequestHeader:
    """The stable part of a request (HDR-01): configuration, marks, system text and ordered tools.

    ``supplied`` marks the configuration fields that the adapter filled in. Equality is canonical (HDR-02): tools compare
    by identity first, so an unchanged header costs no look inside a schema.
    """

    config: CallConfig
    supplied: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    system: str = ""
    tools: tuple[ToolSchema, ...] = attrs.field(default=(), converter=_tools)


@attrs.frozen(kw_only=True)
class ModelRequest:
    """All that an adapter gets: it must not need, and cannot get, anything else (REQ-01)."""

    header: RequestHeader
    messages: Sequence[Message]
    """Immutable; often a view of a longer list, so that a request costs nothing per message of history."""
    session_id: str
