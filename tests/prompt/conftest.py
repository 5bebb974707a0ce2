"""A harness without built-in text, and short ways to look at what it assembles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness_core import Harness, PromptSettings

Seen = Callable[..., Awaitable[list[tuple[str, Any]]]]


@pytest.fixture
def harness() -> Harness:
    return Harness(PromptSettings(identity=False), autoload=False)


@pytest.fixture
def sections(harness: Harness) -> Seen:
    async def seen(scope: Any = None) -> list[tuple[str, Any]]:
        return [(s.name, s.text) for s in (await harness.assemble(scope)).sections if s.name != "deployment:persona"]

    return seen
