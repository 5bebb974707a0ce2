"""The package's public names: loaded when they are asked for, and never hidden by a module of the same name."""

from __future__ import annotations

import subprocess
import sys
import types

import harness_core.inspect


def test_every_public_name_is_there_and_is_no_module() -> None:
    for _ in range(2):  # asking for one loads modules, which must not take another one's name
        for name in harness_core.inspect.__all__:
            assert not isinstance(getattr(harness_core.inspect, name), types.ModuleType), name
    assert set(dir(harness_core.inspect)) >= set(harness_core.inspect.__all__)


def test_a_guard_costs_neither_pages_nor_traces() -> None:
    code = "import sys, harness_core.inspect.growth; print([n for n in sys.modules if n.startswith('harness_core.inspect.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("page", "tracer", "otel", "document"):
        assert f"harness_core.inspect.{name}'" not in loaded


def test_nothing_but_the_command_line_knows_this_package() -> None:
    """It can be deleted without the rest noticing: no module outside of it is loaded with it, or loads it."""
    code = (
        "import sys, harness_core.host, harness_core.agent, harness_core.session, harness_core.tools;"
        "assert not any(name.startswith('harness_core.inspect') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
