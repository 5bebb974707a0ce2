"""How soon a large page opens and answers: 200 listeners, 500 sections, 1,000 tools, in headless Chromium.

More than two seconds to open is a failure. Says so and measures nothing where there is no browser.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from tests.inspect._browser import FLAGS, chromium
from tests.inspect._large import large_page

OPENINGS = 5
ALLOWED = 2.0
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def measured(file: Path, profile: str, executable: str) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    found: dict[str, float] = {}
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable, args=FLAGS, offline=True
        )
        page = context.new_page()

        def taken(run: Callable[[], Any]) -> float:
            begun = time.perf_counter()
            run()
            page.evaluate(PAINTED)
            return round(time.perf_counter() - begun, 3)

        def opened() -> None:
            page.goto(file.as_uri())
            page.locator("html[data-ready]").wait_for()

        openings = [taken(opened) for _ in range(OPENINGS)]
        found["open, the first time"] = openings[0]
        found["open"] = statistics.median(openings)
        for lane in ("Tools", "Sections", "Prompt"):
            summary = page.locator("details.lane > summary", has_text=lane)
            found[f"open {lane.lower()}"] = taken(summary.click)
        found["search"] = taken(lambda: _search(page, "number 777."))
        found["search with many hits"] = taken(lambda: _search(page, "rewritten"))
        found["open everything"] = taken(page.locator("#open-all").click)
        context.close()
    return found


def _search(page: Any, words: str) -> None:
    page.locator("#search").fill(words)
    page.locator("#hits", has_text="in ").wait_for()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output")
    output = parser.parse_args().output
    executable = chromium()
    if executable is None:
        print("chromium is not installed: nothing was measured")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.html"
        file.write_text(anyio.run(large_page), encoding="utf-8")
        found = {"megabytes": round(file.stat().st_size / 1e6, 2)}
        found |= measured(file, str(Path(folder) / "profile"), executable)
    for name, value in found.items():
        print(f"{name:24} {value:8.3f}")
    if output:
        Path(output).write_text(json.dumps(found, indent=2), encoding="utf-8")
    return 1 if found["open, the first time"] > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main())
