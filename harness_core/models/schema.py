"""Tool schemas: the part of the tool interface that a model sees. Owns their immutability and their canonical text."""

from __future__ import annotations

from typing import Any

import attrs

from harness_core._json import FrozenDict, canonical, freeze_object
from harness_core.errors import InvalidTextError
from harness_core.models.messages import Encoded

__all__ = ["ToolSchema"]


def _text_only(instance: ToolSchema, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str):
        raise InvalidTextError(
            f"The {attribute.name} of a tool schema must be a str, not {type(value).__name__} ({value!r:.80}).",
            kind="tool",
            entry=str(getattr(instance, "name", "")),
        )


def _parameters(value: object) -> FrozenDict:
    return value if type(value) is FrozenDict else freeze_object(value, what="The parameters of a tool schema")


@attrs.define(frozen=True, eq=False, slots=True)
class ToolSchema(Encoded):
    """A tool as the model sees it: ``parameters`` is a JSON Schema object, deep-copied and frozen once (TOOL-12).

    Two schemas are equal when their canonical texts are, so the order of keys counts (HDR-02) and ``1`` differs from
    ``True``. Change one with `attrs.evolve`.

    Raises:
        JsonValueError: the parameters are not lossless JSON.
    """

    name: str = attrs.field(validator=_text_only)
    description: str = attrs.field(default="", validator=_text_only)
    parameters: FrozenDict = attrs.field(factory=FrozenDict, converter=_parameters)
    origin: Any = attrs.field(default=None, kw_only=True, repr=False)
    """Who contributed it (set by the registry); never part of equality."""
    _canonical: str | None = attrs.field(default=None, init=False, repr=False)

    @property
    def canonical(self) -> str:
        """The canonical JSON text of name, description and parameters; computed once."""
        text = self._canonical
        if text is None:
            text = canonical({"name": self.name, "description": self.description, "parameters": self.parameters})
            object.__setattr__(self, "_canonical", text)
        return text

    def with_origin(self, origin: Any) -> ToolSchema:
        """A copy that says who contributed it."""
        copy = attrs.evolve(self, origin=origin)
        object.__setattr__(copy, "_canonical", self._canonical)
        return copy

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ToolSchema):
            return NotImplemented
        return self.name == other.name and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.name)
