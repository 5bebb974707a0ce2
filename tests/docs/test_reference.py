"""Pages that are written from the code are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_command_line_says_what_the_commands_say() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "write_reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
