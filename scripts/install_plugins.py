"""Install every distribution below harness_plugins/ into the running interpreter, each as a wheel of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PLUGINS = Path(__file__).parents[1] / "harness_plugins"


def main() -> int:
    folders = sorted(path.parent for path in PLUGINS.glob("*/pyproject.toml"))
    if not folders:
        return 0
    # --no-build-isolation is not used: a plugin must build from its own declared requirements, as it would for anybody.
    command = [sys.executable, "-m", "pip", "install", "--quiet", *[str(folder) for folder in folders]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
