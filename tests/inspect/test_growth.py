"""The growth guard: prompts that grow for no good reason are found while they do, with their writers (UC-28)."""

from __future__ import annotations

import gc
import logging
from typing import Any

import pytest

from harness_core import Section, Source, UserMessage, hookimpl
from harness_core.inspect import GrowthGuard, GrowthLimits, growth_findings
from harness_core.inspect.growth import GrowthWatch
from tests.inspect._recorded import recorded, source

pytestmark = [pytest.mark.anyio, pytest.mark.spec("UC-28")]

PARAGRAPH = "Remember that the user likes tea, and that the meeting is on Tuesday at ten in the small room."


class Piling:
    """Adds the same paragraph to its section once more in every turn."""

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("piling:notes", lambda c: "\n\n".join([PARAGRAPH] * (c.turn or 1)), order=10)


async def test_the_same_text_once_more_in_every_turn_is_found_at_run_time_with_its_writer(caplog: Any) -> None:
    guard = GrowthGuard()
    with caplog.at_level(logging.WARNING, "harness"):
        log = await recorded([guard, source("piling", Piling())], [], prompts=["again"] * 6)
    repeated = [each for each in guard.findings if each.kind == "repeated text"]
    assert [each.times for each in repeated] == [2, 4], "told again when it has doubled, not in every turn"
    assert repeated[0].writers[0].plugin == "piling"
    assert repeated[0].writers[0].version == "1.2.3"
    assert PARAGRAPH.startswith(repeated[0].excerpt)
    (growing,) = [each for each in guard.findings if each.kind == "steady growth"]
    assert growing.name == "piling:notes"
    assert growing.writers[0].plugin == "piling"
    assert list(growing.sizes) == sorted(growing.sizes)
    assert any("piling" in record.getMessage() for record in caplog.records)
    assert growth_findings(log.events) == guard.findings, "the log tells the same afterwards"


async def test_a_listener_that_appends_the_same_section_again_is_the_writer() -> None:
    class Appending:
        def __init__(self) -> None:
            self.count = 0

        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            self.count += 1
            for number in range(self.count):
                assembly.sections.append(Section(f"copy {number}", PARAGRAPH))

    log = await recorded([source("appending", Appending())], [], prompts=["again"] * 3)
    found = growth_findings(log.events)[0]
    assert (found.kind, found.times) == ("repeated section", 2)
    assert found.name == "copy 0, copy 1"
    assert [writer.plugin for writer in found.writers] == ["appending"]


async def test_a_plugins_message_that_says_the_same_again_and_again_is_found() -> None:
    class Nagging:
        @hookimpl
        async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
            from harness_core import Enter

            decision = await call_next()
            nag = UserMessage(id=f"nag{step.turn}", content=PARAGRAPH, source=Source("plugin", "notice", "nagging"))
            return Enter((*decision.messages, nag))

    log = await recorded([source("nagging", Nagging())], [], prompts=["again"] * 4)
    (found,) = growth_findings(log.events)
    assert (found.kind, found.times, found.writers[0].plugin) == ("repeated message", 3, "nagging")


async def test_a_prompt_that_changes_without_growing_is_no_finding() -> None:
    class Changing:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("changing", lambda c: f"Turn {c.turn}. {PARAGRAPH}", order=10)

    guard = GrowthGuard()
    await recorded([guard, source("changing", Changing())], [], prompts=["again"] * 8)
    assert guard.findings == []


async def test_limits_can_be_set_and_reports_taken() -> None:
    seen: list[tuple[str, str]] = []
    guard = GrowthGuard(
        GrowthLimits(headers=2, share=0.01, length=10_000),
        report=lambda session, finding: seen.append((session.id, finding.kind)),
    )
    await recorded([guard, source("piling", Piling())], [], prompts=["again"] * 4)
    assert seen
    assert set(seen) == {("s1", "steady growth")}


async def test_a_finding_says_who_and_what_in_words() -> None:
    log = await recorded([source("piling", Piling())], [], prompts=["again"] * 6)
    told = [str(finding) for finding in growth_findings(log.events)]
    assert any("2 times" in text and "piling (dist-piling 1.2.3)" in text for text in told)
    assert any("->" in text and "piling:notes" in text for text in told)


async def test_the_guard_forgets_sessions_that_are_gone() -> None:
    guard = GrowthGuard()
    await recorded([guard, source("piling", Piling())], [], prompts=["again"] * 2)
    gc.collect()
    assert len(guard._watches) == 0


def test_events_of_other_kinds_cost_nothing_and_say_nothing() -> None:
    from harness_core.session import Event, TurnStart

    assert GrowthWatch().see(Event(0, 0, TurnStart(turn=1))) == []
