"""Pages that are written from the code are up to date, and say something of each thing that they list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pages_say_what_the_code_says() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "write_reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_setting_is_described() -> None:
    """The text comes from the class; see `harness_core.host.descriptions` for where it may stand."""
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [row for row in rows if not row.split(" | ")[-1].strip(" |")] == []
