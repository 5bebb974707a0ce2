"""Settings that cannot be used stop the harness from starting."""

from __future__ import annotations

from typing import Any

import pytest
from harness_session_reference import SessionReference, SessionReferences

from harness_core import Harness
from harness_core.errors import PluginConfigError

pytestmark = pytest.mark.anyio


@pytest.mark.spec("SREF-35")
@pytest.mark.parametrize("value", [0, 4, 1.5, "2", float("inf"), True])
async def test_a_harness_with_such_a_setting_does_not_start(value: Any) -> None:
    async with Harness(autoload=False) as harness:
        with pytest.raises(PluginConfigError, match="max_references"):
            await harness.install(SessionReference, config={"max_references": value})
        assert harness.root.services.get(SessionReferences) is None


@pytest.mark.spec("PRE-10")
async def test_the_service_comes_and_goes_with_the_plugin() -> None:
    async with Harness(autoload=False) as harness:
        plugin = await harness.install(SessionReference)
        assert harness.root.services.get(SessionReferences) is not None
        await plugin.aclose()
        assert harness.root.services.get(SessionReferences) is None
