"""Every error that the framework raises on purpose.

Each class has a ``code`` (the slug under which the documentation explains it, shown at the end of the message) and
carries what a program would want to ask of it as attributes, so that nobody has to parse a message. This module
knows nothing of the rest of the package.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "AssemblyContentError",
    "CompositionError",
    "DuplicateNameError",
    "HarnessError",
    "InactiveOwnerError",
    "InvalidNameError",
    "InvalidOrderError",
    "InvalidTextError",
    "InvalidVariableNameError",
    "JsonValueError",
    "MalformedReferenceError",
    "MultipleCompleteError",
    "PluginError",
    "PluginConfigError",
    "PluginLoadError",
    "PluginOrderError",
    "PluginSetupError",
    "PluginSpecError",
    "ProviderContractError",
    "RegistrationError",
    "RenderError",
    "ReservedToolNameError",
    "ScopeAlreadyBoundError",
    "ScopeCycleError",
    "ScopeError",
    "SectionOrderError",
    "SettingsError",
    "ToolOrderDuplicateError",
    "ToolOrderError",
    "ToolOrderMarkerError",
    "ToolRestrictionError",
    "UnknownToolsError",
    "UnknownVariableError",
    "ValuelessVariableError",
    "WaterfallError",
]


class HarnessError(Exception):
    """Base of all errors of the framework.

    ``plugin``, ``distribution``, ``version``: who is behind it; ``hook``, ``entry``, ``kind``, ``layer``: where it
    happened (``kind`` is the sort of entry: section, context, variable, tool, ...); ``names`` and ``known``: the names
    at fault and the names that would have been right; ``file``, ``line``, ``column``: the place in a source or a text.
    """

    code: ClassVar[str] = "harness-error"

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        plugin: str | None = None,
        distribution: str | None = None,
        version: str | None = None,
        hook: str | None = None,
        kind: str | None = None,
        entry: str | None = None,
        layer: str | None = None,
        names: Iterable[str] = (),
        known: Iterable[str] = (),
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.plugin = plugin
        self.distribution = distribution
        self.version = version
        self.hook = hook
        self.kind = kind
        self.entry = entry
        self.layer = layer
        self.names = tuple(names)
        self.known = tuple(known)
        self.file = file
        self.line = line
        self.column = column

    @property
    def message(self) -> str:
        """What happened, without the remedy and the code."""
        return str(self.args[0])

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.message}{remedy} [{self.code}]"


class JsonValueError(HarnessError, ValueError):
    """A value that lossless JSON cannot hold; ``entry`` is its path, such as ``$.properties.city``."""

    code = "json-value"


class SettingsError(HarnessError, ValueError):
    """A setting given in code has the wrong type or value."""

    code = "invalid-settings"


class CompositionError(HarnessError):
    """A composition file, or a part of one, cannot be used. ``problems`` holds one error for each thing that is wrong."""

    code = "composition"
    problems: tuple[CompositionError, ...] = ()


# --- scopes and owners ------------------------------------------------------------------------------------------------


class ScopeError(HarnessError):
    """Base of errors about the tree of scopes."""

    code = "scope"


class ScopeCycleError(ScopeError):
    """A scope would become its own ancestor (SCOPE-04)."""

    code = "scope-cycle"


class ScopeAlreadyBoundError(ScopeError):
    """A scope has a parent already (SCOPE-03)."""

    code = "scope-bound"


class InactiveOwnerError(HarnessError):
    """Something was registered through a scope or plugin that is gone or going (SCOPE-11, EFF-07)."""

    code = "inactive-owner"


# --- registration -----------------------------------------------------------------------------------------------------


class RegistrationError(HarnessError):
    """Base of errors raised by a registration; the registry is as it was before the call."""

    code = "registration"


class InvalidOrderError(RegistrationError, TypeError):
    """An order that is not a finite int or float (REG-04)."""

    code = "invalid-order"


class InvalidNameError(RegistrationError):
    """A section, context or tool name that is empty or not a string (X-01)."""

    code = "invalid-name"


class InvalidVariableNameError(RegistrationError):
    """A variable name that a reference could not spell (REG-08)."""

    code = "invalid-variable-name"


class InvalidTextError(RegistrationError, TypeError):
    """A text or provider of a kind that cannot be assembled, such as a coroutine function (D4, D15)."""

    code = "invalid-text"


class DuplicateNameError(RegistrationError):
    """The name is taken in the same layer (REG-05); ``layer`` is ``"global"`` or the scope's name."""

    code = "duplicate-name"


class ReservedToolNameError(RegistrationError):
    """A tool is called like the marker of the order list (TOOL-10, X-14)."""

    code = "reserved-tool-name"


class ToolRestrictionError(RegistrationError):
    """A restriction that names nothing, or names tools that the scope does not inherit (TOOL-22)."""

    code = "tool-restriction"


# --- assembly and rendering -------------------------------------------------------------------------------------------


class ProviderContractError(HarnessError, TypeError):
    """A provider returned something that its lane cannot take (X-04, X-11, TOOL-14)."""

    code = "provider-contract"


class AssemblyContentError(HarnessError, TypeError):
    """An assembly holds something that is no section, context, tool or variable value (INV-02, X-19)."""

    code = "assembly-content"


class MultipleCompleteError(HarnessError):
    """Two or more sections claim to be the complete prompt (ASM-14)."""

    code = "multiple-complete"


class SectionOrderError(HarnessError):
    """The before/after constraints between sections (or contexts) contradict each other; ``names`` is the cycle."""

    code = "section-order"


class ToolOrderError(HarnessError):
    """Base of errors about the configured tool order."""

    code = "tool-order"


class ToolOrderDuplicateError(ToolOrderError, ValueError):
    """The order list repeats an entry (TOOL-11)."""

    code = "order-duplicate"


class ToolOrderMarkerError(ToolOrderError, ValueError):
    """The order list lacks the marker for unlisted tools (TOOL-11)."""

    code = "order-missing-marker"


class UnknownToolsError(ToolOrderError):
    """The order list names tools that nobody knows in the assembled scope (TOOL-07)."""

    code = "unknown-tools"


class RenderError(HarnessError):
    """Base of errors found while a section or context is rendered; ``reference`` is the text at fault."""

    code = "render"

    def __init__(self, message: str, *, reference: str = "", offset: int | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.reference = reference
        self.offset = offset


class MalformedReferenceError(RenderError):
    """Braces that are no reference (RND-06); ``form`` is ``"bad_name"`` or ``"not_a_group"``."""

    code = "malformed-reference"

    def __init__(self, message: str, *, form: str, closing: int | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.form = form
        self.closing = closing


class UnknownVariableError(RenderError):
    """A reference to a variable that nobody registered (RND-09)."""

    code = "unknown-variable"


class ValuelessVariableError(RenderError):
    """A reference to a variable that has no value in this assembly (RND-11)."""

    code = "valueless-variable"


class WaterfallError(HarnessError):
    """A listener broke the contract of its waterfall (D3)."""

    code = "waterfall"


# --- plugins ----------------------------------------------------------------------------------------------------------


class PluginError(HarnessError):
    """Base of errors that a plugin as a whole is to blame for."""

    code = "plugin"


class PluginLoadError(PluginError):
    """The entry point could not be imported, or what it names is no plugin."""

    code = "plugin-load"


class PluginSpecError(PluginError):
    """An implementation fits no hook of the framework: its name, arguments or style (UC-23)."""

    code = "plugin-spec"


class PluginConfigError(PluginError):
    """The plugin's configuration does not fit its config class; ``entry`` is the path of the value."""

    code = "plugin-config"


class PluginSetupError(PluginError):
    """The plugin's set-up raised; all that it had registered is undone (D6)."""

    code = "plugin-setup"


class PluginOrderError(PluginError):
    """The before/after constraints between plugins contradict each other (D2); ``names`` is the cycle."""

    code = "plugin-order"
