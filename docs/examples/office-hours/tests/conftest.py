"""Loads the test kit of pluggy-harness, and runs asynchronous tests on asyncio."""

from __future__ import annotations

import pytest

pytest_plugins = ["harness_core.testing"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
