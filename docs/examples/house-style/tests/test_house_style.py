"""The section says what the settings say, and settings without sense are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from harness_house_style import HouseStyle

from harness_core import render_prompt
from harness_core.errors import PluginConfigError
from harness_core.testing import HarnessFactory, plugin_contract

pytestmark = pytest.mark.anyio

test_contract = plugin_contract(HouseStyle, config={"rules": ["Write {{name}} in full."]})


async def test_without_settings_it_has_a_style_of_its_own(harness: HarnessFactory) -> None:
    async with harness(HouseStyle) as running:
        text = render_prompt(await running.assemble())
    assert text == "Write in British spelling, in sentences of at most 25 words."


async def test_rules_are_told_as_they_were_written(harness: HarnessFactory) -> None:
    config = {"spelling": "American", "rules": ["Say we, not I.", "Leave {{placeholders}} alone."]}
    async with harness(HouseStyle, config=config) as running:
        lines = render_prompt(await running.assemble()).splitlines()
    assert lines[0].startswith("Write in American spelling")
    assert lines[1:] == ["- Say we, not I.", "- Leave {{placeholders}} alone."]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"spelling": "Swiss"}, "spelling"),
        ({"words_per_sentence": 1}, "words_per_sentence"),
        ({"rules": ["Be brief.", " "]}, "rules"),
        ({"rule": []}, "rule"),
    ],
)
async def test_settings_without_sense_are_refused_by_name(
    harness: HarnessFactory, config: dict[str, Any], path: str
) -> None:
    with pytest.raises(PluginConfigError) as caught:
        async with harness(HouseStyle, config=config):
            pass
    assert caught.value.entry == path
