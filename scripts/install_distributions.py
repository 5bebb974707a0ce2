"""Install the core and every distribution below harness_plugins/ into the running interpreter, each as a wheel.

``--plugins`` leaves the core as it is; other arguments are pip's. Nothing is editable: what is tested and shown is what a
user would install.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(arguments: list[str]) -> int:
    folders = sorted(path.parent for path in ROOT.glob("harness_plugins/*/pyproject.toml"))
    if "--plugins" not in arguments:
        folders.insert(0, ROOT)
    # Build isolation stays on: each distribution must build from its own declared requirements, as it would for anybody.
    rest = [each for each in arguments if each != "--plugins"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *rest, *map(str, folders)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
