"""Scopes and effects: who sees a registration, and what undoes it."""

from harness_core.scopes.effects import Effects, Handle, TeardownError
from harness_core.scopes.origin import Origin
from harness_core.scopes.scope import ScopeNode

__all__ = ["Effects", "Handle", "Origin", "ScopeNode", "TeardownError"]
