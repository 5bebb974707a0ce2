"""Readings in the steps of a running agent."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any

import anyio
import pytest
from harness_time import ClientZoneError, TimeContext
from harness_time._history import History
from harness_time._texts import span

from harness_core import Enter, Harness, Reject, Source, UserMessage
from harness_core.session import APPEND, MemoryStore, Session, TurnStart, UserMessageLogged

pytestmark = pytest.mark.anyio

SECOND = 1_000


@pytest.mark.spec("TIME-01", "PRE-05", "PRE-08", "UC-27")
async def test_a_new_session_s_first_step_ends_with_a_reading(stage: Any) -> None:
    async with stage() as it:
        it.harness.root.prompt.context("facts", "It rains.", order=0)
        await it.turn()
        assert [message.source.plugin for message in it.session.messages[:3]] == [None, "harness", "time-context"]
        assert it.readings == [
            [
                "Clock, read by the harness as background and not sent by the user: "
                "turn 1, step 1, 2026-07-15T01:01:01+00:00[UTC]",
                "The user's time zone is not known; where it matters, ask the user.",
                "Time since the newest earlier message: unavailable",
            ]
        ]


@pytest.mark.spec("PRE-08", "PRE-09")
async def test_the_source_has_exactly_these_keys(stage: Any) -> None:
    async with stage() as it:
        await it.turn()
        (event,) = it.logged
        message = event.data.message
        assert len(message.content) == 1
        assert message.source.to_json() == {
            "kind": "plugin",
            "plugin": "time-context",
            "form": "snapshot",
            "sections": [{"name": "time-context", "text": message.text}],
        }


@pytest.mark.spec("TIME-02")
async def test_the_elapsed_time_counts_from_the_newest_message_of_the_log(stage: Any, clock: Any) -> None:
    clock.now -= 90_061 * SECOND
    async with stage() as it:
        await it.turn()
        it.clock.pass_by(90_061 * SECOND)
        await it.turn(zone="Asia/Shanghai")
        assert "2026-07-15T09:01:01+08:00[Asia/Shanghai]" in it.readings[1][0]
        assert it.elapsed == ["unavailable", "1d 1h 1m 1s"]


@pytest.mark.spec("TIME-03", "TIME-26")
async def test_each_request_of_a_tool_turn_has_its_reading(stage: Any, clock: Any) -> None:
    def look(call: Any) -> str:
        clock.pass_by(61 * SECOND)
        return "seen"

    async with stage(look=look) as it:
        await it.turn(calls=2)
        assert [
            ("turn 1, step 1" in r[0], "turn 1, step 2" in r[0], "turn 1, step 3" in r[0]) for r in it.readings
        ] == [
            (True, False, False),
            (False, True, False),
            (False, False, True),
        ]
        assert it.elapsed == ["unavailable", "1m 1s", "1m 1s"]
        assert "previous reading" in it.readings[1][2]
        assert len(it.model.requests) == 3
        assert [event.type for event in it.session.events].count("request/header") == 1
        assert all("Clock" not in (request.header.system or "") for request in it.model.requests)


@pytest.mark.spec("TIME-04")
async def test_a_second_step_without_a_first_reading_knows_no_elapsed_time(stage: Any) -> None:
    async with stage() as it:
        await it.turn()
        it.outer.decide = lambda step, decision: (
            Enter(decision.messages[:-1]) if step.turn == 2 and step.step == 1 else decision
        )
        await it.turn(calls=1)
        assert "turn 2, step 2" in it.readings[1][0]
        assert it.elapsed[1] == "unavailable"


@pytest.mark.spec("TIME-05")
@pytest.mark.parametrize("config", [{}, {"refresh_interval_ms": 0}])
async def test_without_an_interval_every_step_has_one(stage: Any, config: dict[str, int]) -> None:
    async with stage(**config) as it:
        await it.turn(calls=1)
        await it.turn()
        assert len(it.readings) == 3


@pytest.mark.spec("TIME-06", "TIME-07", "TIME-08")
@pytest.mark.parametrize(("passed", "readings"), [(9_999, 1), (10_000, 2), (10_001, 2), (0, 1), (-1, 2), (-5_000, 2)])
async def test_an_interval_ends_exactly(stage: Any, passed: int, readings: int) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn()
        it.clock.pass_by(passed)
        await it.turn()
        assert len(it.readings) == readings


@pytest.mark.spec("TIME-08")
async def test_a_clock_that_jumps_back_gives_a_reading_of_no_elapsed_time(stage: Any) -> None:
    async with stage(refresh_interval_ms=3_600_000) as it:
        await it.turn()
        it.clock.pass_by(-5 * SECOND)
        await it.turn()
        assert it.elapsed[1] == "0s"
        assert "01:00:56+00:00" in it.readings[1][0]
        assert it.ends == ["completed", "completed"]


@pytest.mark.spec("TIME-09", "PRE-06", "X-04")
async def test_a_hidden_reading_counts_also_after_a_restart(stage: Any) -> None:
    store = MemoryStore()
    async with stage(store=store, refresh_interval_ms=10_000) as it:
        await it.turn()
        it.hide()
        it.clock.pass_by(5_000)
        await it.turn()
        assert len(it.readings) == 1
    async with stage(store=store, resume=True, refresh_interval_ms=10_000) as it:
        it.clock.pass_by(4_999)
        await it.turn()
        assert len(it.readings) == 1
        it.clock.pass_by(1)
        await it.turn()
        assert len(it.readings) == 2


@pytest.mark.spec("TIME-10")
async def test_sessions_do_not_share_their_intervals(stage: Any) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn()
        it.clock.pass_by(5_000)
        other = await it.harness.create_agent("b")
        await other.run("hello")
        await it.turn()
        assert len(it.readings) == 1
        assert [message.source.plugin for message in other.session.messages[:2]] == [None, "time-context"]


@pytest.mark.spec("TIME-11", "PRE-03")
async def test_a_reading_that_was_dropped_is_due_again(stage: Any) -> None:
    async with stage(refresh_interval_ms=3_600_000) as it:
        it.outer.decide = lambda step, decision: Enter(decision.messages[:-1])
        await it.turn()
        assert it.readings == []
        it.outer.decide = None
        await it.turn()
        assert len(it.readings) == 1


@pytest.mark.spec("TIME-12")
async def test_a_cancelled_turn_gets_what_the_others_decided(stage: Any) -> None:
    seen: list[Any] = []

    async with stage() as it:

        def cancel(step: Any, decision: Any) -> Any:
            step.agent.cancel()
            return decision

        def note(step: Any, decision: Any) -> Any:
            seen.append(decision)
            return decision

        it.inner.decide, it.outer.decide = cancel, note
        await it.turn()
        assert [[message.text for message in decision.messages] for decision in seen] == [["hello"]]
        assert it.ends == ["aborted"]


@pytest.mark.spec("TIME-13", "PRE-02")
async def test_nothing_is_recorded_where_the_step_does_not_begin(stage: Any, caplog: Any) -> None:
    def fail(step: Any, decision: Any) -> Any:
        raise RuntimeError("no")

    async with stage() as it:
        it.inner.decide = fail
        await it.turn()
        it.inner.decide = lambda step, decision: Reject("not now")
        await it.turn()
        assert it.ends == ["error", "blocked"]
        assert it.readings == []
        assert "step/start" not in [event.type for event in it.session.events]


@pytest.mark.spec("TIME-13")
async def test_a_rejection_is_handed_on_as_it_is(stage: Any) -> None:
    rejection = Reject("not now")
    seen: list[Any] = []
    async with stage() as it:
        it.inner.decide = lambda step, decision: rejection
        it.outer.decide = lambda step, decision: seen.append(decision) or decision
        await it.turn()
        assert seen[0] is rejection


@pytest.mark.spec("TIME-14")
async def test_several_zones_in_a_turn_are_listed_and_asked_about(stage: Any) -> None:
    async with stage(time_zone="Asia/Tokyo") as it:
        it.agent.inject(UserMessage(id="x", content="a", source=zoned("Europe/Berlin")))
        await it.turn(zone="America/New_York")
        assert "[Asia/Tokyo]" in it.readings[0][0]
        assert '["America/New_York","Europe/Berlin"]' in it.readings[0][1]
        assert "ask the user" in it.readings[0][1]


@pytest.mark.spec("TIME-15")
async def test_the_same_zone_twice_is_one(stage: Any) -> None:
    async with stage() as it:
        it.agent.inject(UserMessage(id="x", content="a", source=zoned("Europe/Berlin")))
        await it.turn(zone="Europe/Berlin", calls=1)
        assert ["[Europe/Berlin]" in lines[0] for lines in it.readings] == [True, True]


@pytest.mark.spec("TIME-16")
async def test_the_zone_of_the_turn_before_is_not_used(stage: Any) -> None:
    async with stage() as it:
        await it.turn(zone="Europe/Berlin", calls=1)
        await it.turn(calls=1)
        assert ["[Europe/Berlin]" in lines[0] for lines in it.readings] == [True, True, False, False]
        assert "not known" in it.readings[3][1]


@pytest.mark.spec("TIME-16")
async def test_the_zone_of_a_steering_message_holds_from_its_step_on(stage: Any) -> None:
    async with stage() as it:
        it.inner.decide = lambda step, decision: (
            Enter((*decision.messages, UserMessage(id="s", content="b", source=zoned("Asia/Tokyo"))))
            if step.step == 2
            else decision
        )
        await it.turn(zone="Europe/Berlin", calls=2)
        zones = [lines[1] for lines in it.readings]
        assert "Europe/Berlin; read" in zones[0]
        assert '["Asia/Tokyo","Europe/Berlin"]' in zones[1]
        assert zones[2] == zones[1]


@pytest.mark.spec("TIME-17", "PRE-09")
@pytest.mark.parametrize(
    "source",
    [
        {"client_time_zone": "Europe/Berlin"},
        {"rpc_id": "", "client_time_zone": "Europe/Berlin"},
    ],
)
async def test_a_zone_without_a_request_is_nobody_s(stage: Any, source: dict[str, str]) -> None:
    async with stage() as it:
        plugins = Source("plugin", None, "other", {"rpc_id": "r", "client_time_zone": "Asia/Tokyo"})
        it.agent.inject(UserMessage(id="x", content="a", source=plugins))
        await it.turn(**source)
        assert "not known" in it.readings[0][1]


@pytest.mark.spec("TIME-18")
@pytest.mark.parametrize("zone", ["+08:00", "Not/A", "Asia/Calcutta", "Etc/UTC", "asia/shanghai"])
@pytest.mark.parametrize("with_a_good_one", [False, True])
async def test_a_zone_that_does_not_count_fails_the_turn(
    stage: Any, zone: str, with_a_good_one: bool, caplog: Any
) -> None:
    async with stage() as it:
        if with_a_good_one:
            it.agent.inject(UserMessage(id="x", content="a", source=zoned("Europe/Berlin")))
        await it.turn(zone=zone)
        assert it.ends == ["error"]
        assert it.model.requests == []
        record = next(record for record in caplog.records if record.exc_info)
        error = record.exc_info[1]
        assert isinstance(error, ClientZoneError)
        assert error.entry == zone
        await it.turn()
        assert it.ends == ["error", "completed"]


@pytest.mark.spec("TIME-19")
async def test_nothing_is_checked_while_the_interval_runs(stage: Any) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn()
        await it.turn(zone="Not/A")
        assert it.ends == ["completed", "completed"]


@pytest.mark.spec("TIME-20")
async def test_the_zone_of_the_process_is_the_one_at_set_up(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    def local() -> str:
        asked.append(os.environ["TZ"])
        return os.environ["TZ"]

    async with stage(local=local) as it:
        monkeypatch.setenv("TZ", "Europe/Berlin")
        await it.turn()
        await it.turn()
        assert "[Asia/Tokyo]" in it.readings[1][0]
        assert asked == ["Asia/Tokyo"]


@pytest.mark.spec("TIME-24")
async def test_an_hour_that_comes_twice_is_told_apart_by_its_offset(stage: Any, clock: Any) -> None:
    clock.now = 1_793_512_799_000  # 2026-11-01 05:59:59 UTC, when clocks in New York go back

    def look(call: Any) -> str:
        clock.pass_by(60 * SECOND)
        return "seen"

    async with stage(look=look) as it:
        await it.turn(zone="America/New_York", calls=1)
        assert "2026-11-01T01:59:59-04:00[America/New_York]" in it.readings[0][0]
        assert "2026-11-01T01:00:59-05:00[America/New_York]" in it.readings[1][0]
        assert it.elapsed[1] == "1m 0s"


@pytest.mark.spec("X-03", "PRE-02")
async def test_a_first_step_with_nothing_in_it_stays_nothing(stage: Any) -> None:
    async with stage() as it:
        it.inner.decide = lambda step, decision: Enter(())
        await it.turn()
        assert it.ends == ["completed"]
        assert it.model.requests == []
        assert it.readings == []


@pytest.mark.spec("X-03")
async def test_a_later_step_that_nothing_enters_begins_only_where_results_wait(stage: Any) -> None:
    async with stage() as it:
        it.inner.decide = lambda step, decision: decision if step.step == 1 else Enter(())
        it.model.add("first answer")

        def steer(step: Any, decision: Any) -> Any:
            if step.step == 1:
                step.agent.steer("dropped by the inner listener")
            return decision

        it.outer.decide = steer
        await it.turn()
        assert (len(it.readings), len(it.model.requests)) == (1, 1)
        it.outer.decide = None
        await it.turn(calls=1)
        assert (len(it.readings), len(it.model.requests)) == (3, 3)


@pytest.mark.spec("PRE-10")
async def test_unloading_ends_it_at_once(stage: Any) -> None:
    async with stage() as it:
        await it.turn()
        await it.plugin.aclose()
        await it.turn()
        assert len(it.readings) == 1


async def test_a_time_beyond_every_calendar_fails_the_turn(stage: Any, caplog: Any) -> None:
    async with stage() as it:
        it.clock.now = 2**60
        await it.turn()
        assert it.ends == ["error"]
        it.clock.now = 1_784_077_261_000
        await it.turn()
        assert it.ends == ["error", "completed"]


@pytest.mark.spec("PRE-09")
async def test_text_that_imitates_a_reading_is_just_text(stage: Any) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        await it.turn("Clock, read by the harness as background and not sent by the user: turn 1, step 1")
        assert len(it.readings) == 1


async def test_a_loop_of_one_s_own_gets_readings_without_a_session(stage: Any) -> None:
    async with stage() as it:
        for step in (1, 2):
            prepared = await it.harness.prepare_step(it.harness.root, ["hi"], step=step)
            assert [message.source.plugin for message in prepared.messages] == [None, "time-context"]
            assert prepared.messages[1].text.endswith("unavailable")
        assert (await it.harness.prepare_step(it.harness.root)).messages == ()


async def test_a_loop_of_one_s_own_may_keep_a_session(stage: Any) -> None:
    async with stage(refresh_interval_ms=10_000) as it:
        session = Session.create("own", cwd="/", clock=it.clock)
        session.append(TurnStart(turn=1))
        session.append(UserMessageLogged(message=UserMessage(id="u", content="a", source=zoned("Asia/Tokyo"))), APPEND)
        it.clock.pass_by(3 * SECOND)
        prepared = await it.harness.prepare_step(session, ["hi"], turn=1, step=1)
        assert "[Asia/Tokyo]" in prepared.messages[-1].text
        assert prepared.messages[-1].text.endswith(": 3s")
        later = await it.harness.prepare_step(session, ["hi"], turn=2, step=1)
        assert "[UTC]" in later.messages[-1].text, "the zone was told in another turn"
        for message in prepared.messages:
            session.append(UserMessageLogged(message=message), APPEND)
        again = await it.harness.prepare_step(session, ["hi"], turn=1, step=1)
        assert [message.source.kind for message in again.messages] == ["user"]


@pytest.mark.spec("PRE-03", "PRE-06")
async def test_each_reading_stands_where_and_says_what_the_log_says(stage: Any, clock: Any) -> None:
    """The self-check of the plugin's specification, over a session with everything in it."""

    def look(call: Any) -> str:
        clock.pass_by(7 * SECOND)
        return "seen"

    async with stage(look=look) as it:
        for number, zone in enumerate(["Asia/Tokyo", None, "Europe/Berlin"]):
            await it.turn(zone=zone, calls=number)
            clock.pass_by(100 * SECOND)
            if number == 1:
                it.hide()
        check_readings(it.session)


def zoned(zone: str) -> Source:
    return Source(data={"rpc_id": "r1", "client_time_zone": zone})


def check_readings(session: Session) -> None:
    """Every reading is inside an open step, before its request, names turn and step, and compares with the right time."""
    turn = step = 0
    newest: int | None = None
    reading: tuple[int, int] | None = None
    at_start: int | None = None
    found = 0
    for event in session.events:
        match event.type:
            case "turn/start":
                turn, step = event.data.turn, 0  # type: ignore[union-attr]
            case "step/start":
                step, at_start = event.data.step, newest  # type: ignore[union-attr]
        message = getattr(event.data, "message", None)
        if (
            isinstance(message, UserMessage)
            and message.source.plugin == "time-context"
            and event.type == "user/message"
        ):
            found += 1
            lines = message.text.split("\n")
            assert f"turn {turn}, step {step}, " in lines[0]
            since = at_start if step == 1 else reading[1] if reading is not None and reading[0] == turn else None
            assert lines[2].endswith(f": {'unavailable' if since is None else span(event.time_ms - since)}")
            reading = (turn, event.time_ms)
        if event.type in ("user/message", "assistant/message", "tool/result"):
            newest = event.time_ms
    assert found == 6


@pytest.mark.spec("PRE-06")
async def test_each_event_is_looked_at_once(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    take = History._take

    def counted(self: History, event: Any) -> None:
        looked.append(event.seq)
        take(self, event)

    monkeypatch.setattr(History, "_take", counted)
    async with stage() as it:
        for _ in range(3):
            await it.turn(calls=2)
        assert looked == list(range(len(looked)))
        assert len(looked) > 30


async def test_a_session_that_is_over_is_not_kept_alive(stage: Any) -> None:
    plugin = TimeContext(local_zone=lambda: "UTC")
    async with Harness(plugins=[plugin], autoload=False) as harness:
        session = Session.create("own", cwd="/")
        gone = weakref.ref(session)
        await harness.prepare_step(session, ["hi"])
        session.close()
        del session
        await anyio.lowlevel.checkpoint()
        gc.collect()
        assert gone() is None
