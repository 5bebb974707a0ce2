"""Check the core and each plugin's source, strictly, with both type checkers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    sources = [str(path.parent.relative_to(ROOT)) for path in sorted(ROOT.glob("harness_plugins/*/src/*/__init__.py"))]
    mypy = [sys.executable, "-m", "mypy", "--strict", "harness_core", *sources]
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "harness_core", *sources]
    failed = [command for command in (mypy, pyright) if subprocess.run(command, cwd=ROOT, check=False).returncode]
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
