"""Check the core, each plugin's source, and the modules that the documentation writes, strictly.

The sources are checked with both type checkers, the documentation's modules with mypy, as their readers are told to.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = re.compile(r'^```(?:python|text) title="(src/[^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def main() -> int:
    sources = [str(path.parent.relative_to(ROOT)) for path in sorted(ROOT.glob("harness_plugins/*/src/*/__init__.py"))]
    mypy = [sys.executable, "-m", "mypy", "--strict", "harness_core", *sources]
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "harness_core", *sources]
    failed = [command for command in (mypy, pyright) if subprocess.run(command, cwd=ROOT, check=False).returncode]
    return 1 if failed or not documented_modules_fit() else 0


def documented_modules_fit() -> bool:
    """Are the modules that pages write, as they stand at the end of their page, such as they tell readers to write?"""
    bad = 0
    cache = os.environ.get("MYPY_CACHE_DIR", str(ROOT / ".mypy_cache"))
    for page in sorted(ROOT.glob("docs/**/*.md")):
        modules = dict(MODULE.findall(page.read_text(encoding="utf-8")))
        if not modules:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, text in modules.items():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "src"]
            print(f"The modules of {page.relative_to(ROOT)}:", flush=True)
            bad += subprocess.run(command, cwd=folder, check=False).returncode != 0
    return not bad


if __name__ == "__main__":
    raise SystemExit(main())
