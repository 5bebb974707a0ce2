"""What importing the package loads, and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import harness_core


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("statement", ["import harness_core", "from harness_core import *"])
def test_the_library_loads_neither_the_command_line_nor_an_http_client(statement: str) -> None:
    loaded = loaded_by(statement)
    assert not loaded & {"httpx", "click", "rich", "harness_core.cli", "harness_core.inspect", "jsonschema", "pytest"}


def test_a_plugin_that_needs_a_marker_does_not_load_the_host() -> None:
    assert "harness_core.host" not in loaded_by("from harness_core import hookimpl")


def test_every_public_name_is_there_and_others_are_refused() -> None:
    assert {name for name in harness_core.__all__ if getattr(harness_core, name) is None} == set()
    assert set(harness_core.__all__) <= set(dir(harness_core))
    with pytest.raises(AttributeError, match="no attribute 'Harnes'"):
        harness_core.Harnes  # noqa: B018
