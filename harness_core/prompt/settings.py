"""Settings of the prompt registry, and the texts and names of its built-in sections (REG-14, REG-19)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness_core.errors import SettingsError
from harness_core.prompt.tool_order import validated_order

__all__ = ["IDENTITY_ORDER", "IDENTITY_SECTION", "IDENTITY_TEXT", "PERSONA_ORDER", "PERSONA_SECTION", "PromptSettings"]

IDENTITY_SECTION = "harness:identity"
"""The built-in section that says what the model is."""
IDENTITY_ORDER = -100
"""Before everything else that a plugin would normally register."""
IDENTITY_TEXT = (
    "You are an agent run by a harness: a program that assembles these instructions from its plugins, gives you tools "
    "when it has them, and records everything that is said."
)

PERSONA_SECTION = "deployment:persona"
"""The built-in section that holds the deployment's own text; a scope may shadow it."""
PERSONA_ORDER = 0
"""The origin of the order numbers: negative orders stand before the deployment's text, positive ones after it."""


def _flag(value: bool | None, name: str, default: bool = True) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be true or false, not {type(value).__name__} ({value!r}).", entry=name)
    return value


def _identity(value: bool | None) -> bool:
    return _flag(value, "identity")


def _runtime_context(value: bool | None) -> bool:
    return _flag(value, "runtime_context")


def _invariants(value: bool | None) -> bool:
    return _flag(value, "invariants", default=False)


def _persona(value: str | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise SettingsError(f"persona must be a str, not {type(value).__name__}.", entry="persona")
    return value


def _tool_order(value: Iterable[str] | None) -> tuple[str, ...] | None:
    return validated_order(value)


@attrs.frozen
class PromptSettings:
    """How the registry is set up. None means the default everywhere (X-28).

    ``persona``: the deployment's own text; ``identity``: register the built-in identity section; ``runtime_context``:
    False suppresses all contexts; ``tool_order``: tool names in the wanted order with `UNLISTED_TOOLS` for the rest;
    ``invariants``: also refuse duplicate and empty names after the waterfall (INV-02).

    Raises:
        SettingsError: a value has the wrong type.
        ToolOrderDuplicateError, ToolOrderMarkerError: the order list is malformed.
    """

    persona: str = attrs.field(default="", converter=_persona)
    identity: bool = attrs.field(default=True, converter=_identity, kw_only=True)
    runtime_context: bool = attrs.field(default=True, converter=_runtime_context, kw_only=True)
    tool_order: tuple[str, ...] | None = attrs.field(default=None, converter=_tool_order, kw_only=True)
    invariants: bool = attrs.field(default=False, converter=_invariants, kw_only=True)
