"""Run all benchmarks: ``python -m tests.bench [names]``. Values and medians go to ``bench-results/`` as JSON.

Each public module of this folder is a benchmark of its own that takes ``--output FILE``; those under pyperf keep all
their values there, and their medians are gathered in ``medians.json``, in seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = Path("bench-results")


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def medians(file: Path) -> dict[str, float]:
    """The medians of a pyperf result; nothing where the file is of another kind."""
    import pyperf

    written: dict[str, Any] = json.loads(file.read_text())
    if "benchmarks" not in written:
        return {}
    return {bench.get_name(): bench.median() for bench in pyperf.BenchmarkSuite.load(str(file))}


def main(chosen: list[str]) -> int:
    RESULTS.mkdir(exist_ok=True)
    gathered: dict[str, float] = {}
    failed = []
    for name in chosen or names():
        output = RESULTS / f"{name}.json"
        output.unlink(missing_ok=True)
        print(f"== {name}", flush=True)
        ended = subprocess.run([sys.executable, "-m", f"tests.bench.{name}", "--output", str(output)])
        if ended.returncode:
            failed.append(name)
        if output.exists():
            gathered |= medians(output)
    (RESULTS / "medians.json").write_text(json.dumps(gathered, indent=2) + "\n")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
