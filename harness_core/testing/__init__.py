"""The test kit for plugin authors: fixtures, a scripted model, a clock of its own, and the contract of a plugin as checks.

A pytest plugin as well, loaded only when asked for: ``pytest_plugins = ["harness_core.testing"]`` in the top conftest.py,
or ``-p harness_core.testing``. Every name is loaded when it is first used, and none of them needs pytest but the fixtures,
`plugin_contract` and `StoreConformance`. Decides nothing about running harnesses. PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_core.models import FailureFacts, ScriptedAnswer, ScriptedModel
    from harness_core.testing.assertions import (
        assert_cache_stable,
        assert_deterministic,
        assert_scoped,
        assert_undoes_itself,
        plugin_contract,
    )
    from harness_core.testing.clock import FakeClock
    from harness_core.testing.contract import CHECKS, contract_findings
    from harness_core.testing.stage import AgentFactory, HarnessFactory
    from harness_core.testing.store_conformance import StoreConformance
    from harness_core.testing.venv import FreshVenv, run_in_fresh_venv

__all__ = [
    "CHECKS",
    "AgentFactory",
    "FailureFacts",
    "FakeClock",
    "FreshVenv",
    "HarnessFactory",
    "ScriptedAnswer",
    "ScriptedModel",
    "StoreConformance",
    "assert_cache_stable",
    "assert_deterministic",
    "assert_scoped",
    "assert_undoes_itself",
    "contract_findings",
    "plugin_contract",
    "run_in_fresh_venv",
]

pytest_plugins = ("harness_core.testing.fixtures",)
"""What makes this package a pytest plugin."""

_HOMES = {
    "harness_core.models": ("FailureFacts", "ScriptedAnswer", "ScriptedModel"),
    "harness_core.testing.assertions": (
        "assert_cache_stable",
        "assert_deterministic",
        "assert_scoped",
        "assert_undoes_itself",
        "plugin_contract",
    ),
    "harness_core.testing.clock": ("FakeClock",),
    "harness_core.testing.contract": ("CHECKS", "contract_findings"),
    "harness_core.testing.stage": ("AgentFactory", "HarnessFactory"),
    "harness_core.testing.store_conformance": ("StoreConformance",),
    "harness_core.testing.venv": ("FreshVenv", "run_in_fresh_venv"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
