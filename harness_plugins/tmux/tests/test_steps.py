"""Readings in the first steps of a running agent's turns."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from harness_tmux import Config, TmuxContext

from harness_core import Enter, Harness, Reject
from harness_core.errors import PluginConfigError
from harness_core.session import APPEND, MemoryStore, SurfaceAppend, UserMessageLogged
from harness_core.tools import ShellResult

pytestmark = pytest.mark.anyio

OUTSIDE = ShellResult(exit_code=1, stdout="", stderr="")


@pytest.mark.spec("TMUX-01", "TMUX-02", "PRE-05", "PRE-08", "UC-27")
async def test_the_reading_stands_in_front_of_the_prompt(stage: Any) -> None:
    async with stage() as it:
        it.harness.root.prompt.context("facts", "It rains.", order=0)
        await it.turn()
        first = it.session.messages[0]
        assert [message.source.plugin for message in it.session.messages[:3]] == ["tmux-context", None, "harness"]
        assert first.text.split("\n")[0] == (
            "The harness runs in this tmux pane; told by it as background, not sent by the user (turn 1):"
        )
        assert first.source.to_json() == {
            "kind": "plugin",
            "plugin": "tmux-context",
            "form": "snapshot",
            "sections": [{"name": "tmux-context", "text": first.text}],
        }
        (event,) = [
            event
            for event in it.session.events
            if isinstance(event.data, UserMessageLogged) and event.data.message is first
        ]
        assert event.surface == SurfaceAppend() == APPEND


async def test_the_query_names_the_process_and_is_bounded(stage: Any) -> None:
    async with stage() as it:
        await it.turn()
        ((command, timeout),) = it.shell.asked
        assert "-p 4711" in command
        assert timeout == 2.0


@pytest.mark.spec("TMUX-03")
async def test_later_steps_ask_nothing(stage: Any) -> None:
    async with stage() as it:
        it.shell.result = OUTSIDE
        await it.turn(calls=2)
        assert len(it.shell.asked) == 1
        assert len(it.model.requests) == 3


@pytest.mark.spec("TMUX-04", "TMUX-05")
async def test_only_a_location_that_is_new_is_told(stage: Any) -> None:
    async with stage() as it:
        await it.turn()
        await it.turn()
        assert (len(it.shell.asked), len(it.readings)) == (2, 1)
        it.shell.moved(window="renamed")
        await it.turn()
        assert "(turn 3):" in it.readings[1]
        assert '"renamed"' in it.readings[1]
        it.shell.moved(pane_id="%9", pane_index="0")
        await it.turn()
        assert len(it.readings) == 3


async def test_the_comparison_is_with_the_newest_reading_only(stage: Any) -> None:
    async with stage() as it:
        for window in ("a", "b", "a"):
            it.shell.moved(window=window)
            await it.turn()
        assert len(it.readings) == 3


@pytest.mark.spec("TMUX-06", "TMUX-07", "TMUX-08")
@pytest.mark.parametrize(("passed", "asked"), [(0, 1), (9_999, 1), (10_000, 2), (10_001, 2), (-1, 2), (-9_000, 2)])
async def test_nothing_is_asked_while_the_interval_runs(stage: Any, passed: int, asked: int) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn()
        it.clock.pass_by(passed)
        it.shell.moved(window="other")
        await it.turn()
        assert len(it.shell.asked) == len(it.readings) == asked


@pytest.mark.spec("TMUX-09")
async def test_a_message_without_text_is_as_good_as_none(stage: Any) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn()
        it.log()
        await it.turn()
        assert len(it.shell.asked) == 2
        assert len(it.readings) == 3
        assert it.readings[2].partition("\n")[2] == it.readings[0].partition("\n")[2]


@pytest.mark.spec("TMUX-10")
async def test_a_message_of_one_line_holds_no_state(stage: Any) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn()
        it.log("one line")
        await it.turn()
        assert len(it.shell.asked) == 1, "it counts for the interval"
        it.clock.pass_by(10_000)
        await it.turn()
        assert len(it.readings) == 3


@pytest.mark.spec("TMUX-11")
async def test_without_a_shell_nothing_happens(stage: Any) -> None:
    async with stage(with_shell=False) as it:
        await it.turn()
        assert it.readings == []
        assert it.ends == ["completed"]


@pytest.mark.spec("TMUX-12", "TMUX-13", "TMUX-14", "TMUX-15", "TMUX-16")
@pytest.mark.parametrize(
    ("code", "output"),
    [
        (1, ""),
        (1, "a\\tb\\tc\\td\\t%1\\t1\\t1\\tl\n"),
        (None, "a\\tb\\tc\\td\\t%1\\t1\\t1\\tl\n"),
        (0, "a\\tb\\tc\n"),
        (0, "a\\tb\\tc\\td\\t\\t1\\t1\\tl\n"),
        (0, "a\\tb\\tc\\tc\\td\\t%1\\t1\\t1\\tl\n"),
        (0, ""),
    ],
)
async def test_no_location_is_no_reading_and_no_warning(stage: Any, code: Any, output: str, caplog: Any) -> None:
    async with stage() as it:
        it.shell.result = ShellResult(exit_code=code, stdout=output, stderr="")
        await it.turn()
        assert len(it.shell.asked) == 1
        assert it.readings == []
        assert caplog.records == []
        assert it.ends == ["completed"]


@pytest.mark.spec("TMUX-18", "TMUX-19")
@pytest.mark.parametrize("error", [OSError("no such shell"), PermissionError("the policy refuses it")])
async def test_a_shell_that_raises_is_reported_and_the_turn_goes_on(stage: Any, error: Exception, caplog: Any) -> None:
    async with stage() as it:
        it.shell.result = error
        await it.turn()
        (record,) = caplog.records
        assert (record.levelno, record.name) == (logging.WARNING, "harness.plugin.tmux-context")
        assert str(error) in record.message
        assert it.ends == ["completed"]
        it.shell.moved()
        await it.turn()
        assert len(it.readings) == 1


async def test_a_shell_that_hangs_is_left_and_the_turn_goes_on(stage: Any) -> None:
    async with stage(seconds=0.02) as it:
        it.shell.result = anyio.sleep_forever
        await it.turn()
        assert it.readings == []
        assert it.ends == ["completed"]


async def test_cancelling_the_turn_ends_the_query(stage: Any) -> None:
    async with stage() as it:

        async def cancelled() -> Any:
            it.agent.cancel()
            await anyio.sleep_forever()

        it.shell.result = cancelled
        await it.turn()
        assert it.ends == ["aborted"]


@pytest.mark.spec("TMUX-21")
async def test_a_cancelled_turn_is_left_alone_and_the_next_one_is_told(stage: Any) -> None:
    seen: list[Any] = []
    async with stage() as it:

        def cancel(step: Any, decision: Any) -> Any:
            step.agent.cancel()
            return decision

        it.inner.decide = cancel
        it.outer.decide = lambda step, decision: seen.append(decision) or decision
        await it.turn()
        assert it.shell.asked == []
        assert [message.text for message in seen[0].messages] == ["hello"]
        assert it.ends == ["aborted"]
        it.inner.decide = None
        await it.turn()
        assert len(it.readings) == 1


@pytest.mark.spec("TMUX-22", "X-04", "PRE-06")
async def test_what_a_compaction_hid_was_told_all_the_same_also_after_a_restart(stage: Any) -> None:
    store = MemoryStore()
    async with stage(store=store) as it:
        await it.turn()
        it.hide()
        await it.turn()
        assert len(it.readings) == 1
    async with stage(store=store, resume=True) as it:
        await it.turn()
        assert (len(it.shell.asked), len(it.readings)) == (1, 1)


@pytest.mark.spec("TMUX-23", "PRE-02")
async def test_a_rejected_step_asks_nothing(stage: Any) -> None:
    rejection = Reject("no")
    seen: list[Any] = []
    async with stage() as it:
        it.inner.decide = lambda step, decision: rejection
        it.outer.decide = lambda step, decision: seen.append(decision) or decision
        await it.turn()
        assert it.shell.asked == []
        assert seen == [rejection]
        assert it.ends == ["blocked"]


@pytest.mark.spec("X-03", "PRE-02")
async def test_a_first_step_with_nothing_in_it_stays_nothing(stage: Any) -> None:
    async with stage() as it:
        it.inner.decide = lambda step, decision: Enter(())
        await it.turn()
        assert it.shell.asked == []
        assert it.ends == ["completed"]
        assert it.model.requests == []


@pytest.mark.spec("PRE-03")
async def test_a_reading_that_was_dropped_is_due_again(stage: Any) -> None:
    async with stage(refresh_interval_ms=3_600_000) as it:
        it.outer.decide = lambda step, decision: Enter(decision.messages[1:])
        await it.turn()
        it.outer.decide = None
        await it.turn()
        assert ["(turn 2)" in text for text in it.readings] == [True]


@pytest.mark.spec("PRE-09")
async def test_text_that_imitates_a_reading_is_just_text(stage: Any) -> None:
    async with stage() as it:
        await it.turn()
        await it.turn(it.readings[0])
        assert len(it.readings) == 1
        it.shell.moved(window="other")
        await it.turn(it.readings[0])
        assert len(it.readings) == 2


@pytest.mark.spec("PRE-10")
async def test_unloading_ends_it_at_once(stage: Any) -> None:
    async with stage() as it:
        await it.plugin.aclose()
        await it.turn()
        assert it.shell.asked == []


@pytest.mark.spec("TMUX-24")
@pytest.mark.parametrize("value", [-1, 1.5, 2**53, float("inf"), float("nan"), True, "5"])
async def test_an_interval_that_is_no_count_is_refused(value: Any) -> None:
    async with Harness(autoload=False) as harness:
        with pytest.raises(PluginConfigError, match="refresh_interval_ms"):
            await harness.install(TmuxContext, config={"refresh_interval_ms": value})
    with pytest.raises((ValueError, TypeError), match="must"):
        Config(refresh_interval_ms=value)


async def test_a_loop_of_one_s_own_gets_a_reading_too(stage: Any) -> None:
    async with stage() as it:
        prepared = await it.harness.prepare_step(it.harness.root, ["hi"])
        assert [message.source.plugin for message in prepared.messages] == ["tmux-context", None]
