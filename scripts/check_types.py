"""Check the core and each plugin's source, strictly, with both type checkers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    sources = ["harness_core", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("harness_plugins/*/src/*"))]
    failed = 0
    for source in sources:
        failed |= subprocess.run([sys.executable, "-m", "mypy", "--strict", source], cwd=ROOT, check=False).returncode
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *sources]
    failed |= subprocess.run(command, cwd=ROOT, check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
