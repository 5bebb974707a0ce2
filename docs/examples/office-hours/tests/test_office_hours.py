"""The fact follows the clock, the system text does not, and the model is told only of changes."""

from __future__ import annotations

import pytest
from harness_office_hours import OfficeHours

from harness_core import render_context_snapshot, render_prompt
from harness_core.errors import PluginConfigError
from harness_core.testing import AgentFactory, FakeClock, HarnessFactory, ScriptedModel, plugin_contract

pytestmark = pytest.mark.anyio

test_contract = plugin_contract(OfficeHours)

HOUR = 3600.0
DAY = 24 * HOUR


async def test_the_office_opens_and_closes_by_its_own_clock(harness: HarnessFactory, fake_clock: FakeClock) -> None:
    async with harness(OfficeHours, config={"zone": "Europe/Paris"}) as running:

        async def is_open() -> bool:
            return "is open" in render_context_snapshot(await running.assemble())

        seen = []
        for seconds in (0.0, 7.5 * HOUR, 0.5 * HOUR, 7.9 * HOUR, 0.1 * HOUR):  # from Thursday, 01:00 in Paris
            fake_clock.advance(seconds)
            seen.append(await is_open())
        assert seen == [False, False, True, True, False]
        fake_clock.advance(2 * DAY - 5 * HOUR)  # Saturday noon
        assert not await is_open()


async def test_texts_of_others_can_refer_to_the_hours(harness: HarnessFactory) -> None:
    async with harness(OfficeHours, config={"closes": "12:30"}) as running:
        running.root.prompt.section("example:rule", "Promise a call only within {{office_hours}}.", order=110)
        text = render_prompt(await running.assemble())
    assert text == "Promise a call only within Monday to Friday, 09:00 to 12:30 (UTC)."


async def test_the_model_is_told_of_changes_and_of_nothing_else(
    agent: AgentFactory, scripted_model: ScriptedModel, fake_clock: FakeClock
) -> None:
    scripted_model.add("Night.", "Still night.", "Morning.")
    async with agent(OfficeHours) as it:
        for hours in (0.0, 1.0, 9.0):
            fake_clock.advance(hours * HOUR)
            assert (await it.run("Is anybody there?")).ok
    first, second, third = (
        [each.text for each in request.messages if "The office is" in each.text] for request in scripted_model.requests
    )
    assert len(first) == len(second) == 1
    assert ["closed" in first[0], "open" in third[-1], len(third)] == [True, True, 2]
    assert len({request.header.system for request in scripted_model.requests}) == 1


@pytest.mark.parametrize(
    ("key", "value"), [("zone", "Paris"), ("zone", "../UTC"), ("opens", "nine"), ("closes", "25:00")]
)
async def test_times_that_are_none_are_refused_by_name(harness: HarnessFactory, key: str, value: str) -> None:
    with pytest.raises(PluginConfigError, match=key):
        async with harness(OfficeHours, config={key: value}):
            pass
