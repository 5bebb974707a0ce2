"""Real distributions in real processes: where they lie on the path never shows in a prompt."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = """
from harness_core import Section, ToolSchema, hookimpl

class Plugin:
    @hookimpl
    def harness_setup(self, ctx):
        ctx.prompt.section("{name}:s", "section of {name}", order=1)
        ctx.prompt.context("{name}:c", "context of {name}", order=1)
        ctx.tools.register(ToolSchema("{name}_tool", "tool of {name}"), lambda call: "")

    @hookimpl
    def system_prompt_assemble(self, assembly):
        assembly.sections.append(Section("heard", "heard by {name}"))
"""


def distribution(folder: Path, name: str) -> Path:
    """What pip leaves behind: a module, and metadata with an entry point."""
    folder.mkdir()
    (folder / f"order_{name}.py").write_text(PLUGIN.format(name=name))
    info = folder / f"order_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: order-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[harness.plugins]\n{name} = order_{name}:Plugin\n")
    return folder


@pytest.mark.spec("UC-24", "D2")
def test_the_same_plugins_in_any_order_on_the_path_give_the_same_bytes(tmp_path: Path) -> None:
    folders = [distribution(tmp_path / name, name) for name in ("bravo", "alpha", "charlie")]
    work = tmp_path / "work"
    work.mkdir()
    outputs = set()
    for order in itertools.islice(itertools.permutations(folders), 0, 6, 2):
        done = subprocess.run(
            [sys.executable, "-m", "harness_core.cli", "prompt", "--json"],
            cwd=work,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, order))},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        outputs.add(done.stdout)
    [output] = outputs
    shown = json.loads(output)
    names = [section["name"] for section in shown["sections"] if section["name"].endswith(":s")]
    assert names == ["alpha:s", "bravo:s", "charlie:s"]
    heard = [section["text"] for section in shown["sections"] if section["name"] == "heard"]
    assert heard == ["heard by charlie", "heard by bravo", "heard by alpha"]  # the later registered is further out
