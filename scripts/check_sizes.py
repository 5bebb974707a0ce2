"""No module may grow beyond what one can read in a sitting: 400 lines."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 400


def main() -> int:
    long = []
    for pattern in ("harness_core/**/*.py", "harness_plugins/*/src/**/*.py"):
        for path in sorted(ROOT.glob(pattern)):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LIMIT:
                long.append(f"{path.relative_to(ROOT)}: {lines} lines, more than {LIMIT}")
    print("\n".join(long) or "all modules are short enough")
    return 1 if long else 0


if __name__ == "__main__":
    raise SystemExit(main())
