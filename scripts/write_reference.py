"""Write the pages of the reference that come from the code; ``--check`` only says which are not up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from reference import codes, commands, configuration, events

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
PAGES = {
    "command-line.md": commands.page,
    "configuration.md": configuration.page,
    "errors.md": codes.errors_page,
    "events.md": events.page,
    "findings.md": codes.findings_page,
}


def main(arguments: list[str]) -> int:
    stale = []
    for name, made in PAGES.items():
        page, text = FOLDER / name, made()
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                page.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"{', '.join(stale)}: not up to date; run python scripts/write_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
