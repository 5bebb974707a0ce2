"""Pages in headless Chromium, with no network and a fresh profile; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["FLAGS", "browser"]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser(profile: Path, **options: Any) -> Iterator[Any]:
    """A browser context whose profile is a fresh folder."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = chromium()
    if executable is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=executable, args=FLAGS, offline=True, **options
        )
        try:
            yield context
        finally:
            context.close()
