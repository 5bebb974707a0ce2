"""A model request in neutral form: configuration, header and messages. Knows neither the log nor any vendor."""

from __future__ import annotations

from typing import Any

import attrs

from harness_core._json import FrozenDict, JsonObject, freeze_object
from harness_core.models.messages import Message
from harness_core.models.schema import ToolSchema

__all__ = ["CallConfig", "ModelRequest", "RequestHeader"]


@attrs.frozen(kw_only=True)
class CallConfig:
    """Which model is called, and how. ``None`` means: not said, so that the adapter may fill it in (HDR-05)."""

    provider: str | None = None
    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    effort: str | None = None
    stop: tuple[str, ...] | None = attrs.field(default=None, converter=lambda v: None if v is None else tuple(v))
    seed: int | None = None
    extra: FrozenDict = attrs.field(factory=FrozenDict, converter=lambda v: freeze_object(v, what="CallConfig.extra"))
    """Fields that only one service knows; the adapter decides what it takes of them."""

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
    supplied: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)
    system: str = ""
    tools: tuple[ToolSchema, ...] = attrs.field(default=(), converter=tuple)


@attrs.frozen(kw_only=True)
class ModelRequest:
    """All that an adapter gets: it must not need, and cannot get, anything else (REQ-01)."""

    header: RequestHeader
    messages: tuple[Message, ...]
    session_id: str
