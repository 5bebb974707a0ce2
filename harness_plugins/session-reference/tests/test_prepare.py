"""What a message says of the sessions that it refers to."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from harness_session_reference import Config, Reference, ReferenceProblem, SessionReferenceError, SessionReferences
from harness_session_reference.service import _unless

from harness_core import Source, TextBlock
from harness_core.models import ReasoningBlock, TextDelta, ToolCallBlock, ToolResultMessage
from harness_core.session import (
    APPEND,
    AssistantChunk,
    FileStore,
    MemoryStore,
    StepStart,
    StoredLog,
    ToolCallStarted,
    ToolResultLogged,
    TurnStart,
)

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("_writer.py")


async def refused(stage: Any, *references: Any, signal: Any = None) -> SessionReferenceError:
    with pytest.raises(SessionReferenceError) as error:
        await stage.service.prepare(stage.agent, "look", references, signal)
    return error.value


@pytest.mark.spec("SREF-01")
async def test_without_references_there_is_only_the_content(stage: Any) -> None:
    async with stage() as it:
        content = (TextBlock("a"), TextBlock("b"))
        prepared = await it.service.prepare(it.agent, content)
        assert prepared.content == content
        assert prepared.content is not content
        assert all(ours is not theirs for ours, theirs in zip(prepared.content, content, strict=True))
        assert prepared.recall is None
        assert (await it.service.prepare(it.agent, "a")).content == (TextBlock("a"),)


@pytest.mark.spec("SREF-02", "PRE-08", "UC-27")
async def test_one_recall_holds_all_sessions_in_order(stage: Any, recalled: Any) -> None:
    async with stage(max_references=2) as it:
        for name in ("a", "b"):
            past = it.past(name, cwd=f"/{name}")
            past.user(f"ask {name}")
            past.assistant(f"answer {name}")
        events = len(it.session.events)
        given = [{"id": "b", "label": "first"}, {"id": "b", "label": "dup"}, Reference("a")]
        prepared = await it.service.prepare(it.agent, "look", given)
        assert prepared.recall is not None
        assert recalled(prepared.recall) == [
            {
                "session_id": name,
                "label": label,
                "cwd": f"/{name}",
                "captured_through_seq": 5,
                "conversation": [
                    {"role": "user", "text": f"ask {name}"},
                    {"role": "assistant", "text": f"answer {name}"},
                ],
            }
            for name, label in (("b", "first"), ("a", "a"))
        ]
        stats = {
            "compacted": False,
            "original_messages": 2,
            "retained_messages": 2,
            "omitted_messages": 0,
            "omitted_bytes": 0,
            "truncated": False,
        }
        assert prepared.recall.source.to_json() == {
            "kind": "session-reference",
            "form": "recall",
            "version": 1,
            "references": [
                {"session_id": "b", "label": "first", "captured_through_seq": 5, **stats, "input_index": 0},
                {"session_id": "a", "label": "a", "captured_through_seq": 5, **stats, "input_index": 1},
            ],
        }
        for said in ("copied from those sessions", "not trusted", "background only", "until the person in this"):
            assert said in prepared.recall.text
        assert len(prepared.recall.content) == 1
        assert len(it.session.events) == events, "nothing is written"


@pytest.mark.spec("SREF-03", "SREF-04", "SREF-05")
async def test_what_is_wrong_with_the_list_is_said_before_anything_is_read(stage: Any) -> None:
    async with stage(max_references=2) as it:
        assert (await refused(it, {"id": "gone"}, {"id": "here"})).problem is ReferenceProblem.SELF_REFERENCE
        assert (await refused(it, *({"id": name} for name in "abc"))).problem is ReferenceProblem.TOO_MANY
        assert (await refused(it, {"id": 5})).problem is ReferenceProblem.INVALID_REFERENCE


@pytest.mark.spec("SREF-06")
async def test_one_session_that_cannot_be_read_leaves_nothing(stage: Any) -> None:
    async with stage() as it:
        it.past("a").user("hello")
        error = await refused(it, {"id": "a"}, {"id": "first gone"}, {"id": "second gone"})
        assert error.problem is ReferenceProblem.READ_FAILED
        assert error.entry == "first gone"
        assert "There is no session 'first gone'" in str(error)


class Held(MemoryStore):
    """A store whose reads begin and do not end until they are let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Semaphore(0)
        self.free = threading.Event()
        self.fail = False

    def read(self, session_id: str) -> StoredLog:
        self.begun.release()
        self.free.wait()
        if self.fail:
            raise OSError("the disk is gone")
        return super().read(session_id)


@pytest.fixture
def held() -> Iterator[Held]:
    store = Held()
    yield store
    store.free.set()


@pytest.mark.spec("SREF-07")
async def test_a_signal_that_is_set_already_ends_it(stage: Any) -> None:
    async with stage() as it:
        it.past("a").user("hello")
        signal = anyio.Event()
        signal.set()
        assert (await refused(it, {"id": "a"}, signal=signal)).problem is ReferenceProblem.CANCELLED
        assert (await refused(it, {"id": "gone"}, signal=signal)).problem is ReferenceProblem.CANCELLED


@pytest.mark.spec("SREF-07")
async def test_a_read_that_hangs_is_left_at_once(stage: Any, held: Held) -> None:
    async with stage(store=held) as it:
        signal = anyio.Event()

        async def set_it() -> None:
            await anyio.to_thread.run_sync(held.begun.acquire)
            signal.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_it)
            assert (await refused(it, {"id": "a"}, {"id": "b"}, signal=signal)).problem is ReferenceProblem.CANCELLED
        assert not held.free.is_set()


@pytest.mark.spec("SREF-07")
async def test_a_cancelled_task_is_cancelled(stage: Any, held: Held) -> None:
    async with stage(store=held) as it:
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                await anyio.to_thread.run_sync(held.begun.acquire)
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                await it.service.prepare(it.agent, "look", [{"id": "a"}], anyio.Event())
            raise AssertionError("it went on")
        assert scope.cancelled_caught


@pytest.mark.spec("SREF-07")
async def test_a_signal_counts_before_a_failure(stage: Any) -> None:
    class Failing(MemoryStore):
        signal: Any = None

        def read(self, session_id: str) -> StoredLog:
            anyio.from_thread.run_sync(self.signal.set)
            raise OSError("the disk is gone")

    store = Failing()
    async with stage(store=store) as it:
        store.signal = anyio.Event()
        error = await refused(it, {"id": "a"}, signal=store.signal)
        assert error.problem is ReferenceProblem.CANCELLED
        store.signal = anyio.Event()
        error = await refused(it, {"id": "a"}, signal=anyio.Event())
        assert error.problem is ReferenceProblem.READ_FAILED
        assert "the disk is gone" in str(error)


@pytest.mark.spec("SREF-07")
async def test_a_signal_that_is_set_in_the_same_moment_counts_before_a_failure() -> None:
    signal = anyio.Event()

    async def fail() -> None:
        signal.set()
        raise OSError("the disk is gone")

    with pytest.raises(SessionReferenceError) as error:
        await _unless(signal, fail)
    assert error.value.problem is ReferenceProblem.CANCELLED
    with pytest.raises(OSError, match="gone"):
        await _unless(None, fail)


@pytest.mark.spec("SREF-08", "SREF-09")
async def test_a_signal_stops_reading_and_nothing_else(stage: Any) -> None:
    async with stage() as it:
        signal = anyio.Event()
        signal.set()
        assert (await it.service.prepare(it.agent, "a", (), signal)).recall is None
        assert (await refused(it, {"id": "here"}, signal=signal)).problem is ReferenceProblem.SELF_REFERENCE


@pytest.mark.spec("SREF-10", "SREF-11", "SREF-14", "SREF-31")
async def test_only_what_people_and_models_said_is_copied(stage: Any, recalled: Any) -> None:
    async with stage() as it:
        past = it.past("a")
        first = past.user("old")
        last = past.assistant("old answer")
        past.compact("summary", first, last)
        past.user("one", "two")
        past.user("")
        past.user("from a plugin", source=Source("plugin", "snapshot", "time-context"))
        past.user("recalled", source=Source("session-reference", "recall"))
        past.user("background", source=Source("agent-instructions", "instructions"))
        past.assistant(ReasoningBlock("thought"), TextBlock("said"), ToolCallBlock("c", "look", "{}"))
        past.assistant(ReasoningBlock("only thought"))
        past.session.append(TurnStart(turn=past.turn + 1))
        past.session.append(StepStart(turn=past.turn + 1, step=1))
        past.session.append(ToolCallStarted(turn=past.turn + 1, step=1, call_id="c", name="look", arguments="{}"))
        result = ToolResultMessage(call_id="c", name="look", content="seen")
        past.session.append(ToolResultLogged(turn=past.turn + 1, step=1, message=result), APPEND)
        prepared = await it.service.prepare(it.agent, "look", [{"id": "a"}])
        (found,) = recalled(prepared.recall)
        assert found["conversation"] == [
            {"role": "user", "text": "summary"},
            {"role": "user", "text": "one\ntwo"},
            {"role": "assistant", "text": "said"},
        ]
        assert found["captured_through_seq"] == len(past.session.events) - 1
        (stats,) = prepared.recall.source.data["references"]
        assert (stats["compacted"], stats["original_messages"]) == (True, 3)


@pytest.mark.spec("SREF-10")
async def test_a_replacement_that_is_no_summary_is_context(stage: Any, recalled: Any) -> None:
    async with stage() as it:
        past = it.past("a")
        first = past.user("fact", source=Source("plugin", "snapshot", "p"))
        past.compact("newer fact", first, first, Source("plugin", "snapshot", "p"))
        second = past.user("said")
        past.compact("said better", second, second, Source())
        prepared = await it.service.prepare(it.agent, "look", [{"id": "a"}])
        (found,) = recalled(prepared.recall)
        assert found["conversation"] == [{"role": "user", "text": "said better"}]
        assert not prepared.recall.source.data["references"][0]["compacted"]


@pytest.mark.spec("SREF-10")
async def test_an_answer_that_is_still_coming_is_not_copied_and_one_that_was_cut_short_is(
    stage: Any, recalled: Any
) -> None:
    async with stage() as it:
        past = it.past("a")
        past.user("ask")
        past.assistant("cut sh", interrupted=True)
        past.session.append(TurnStart(turn=past.turn + 1))
        past.session.append(StepStart(turn=past.turn + 1, step=1))
        past.session.append(AssistantChunk(turn=past.turn + 1, step=1, chunk=TextDelta("comi")))
        prepared = await it.service.prepare(it.agent, "look", [{"id": "a"}])
        (found,) = recalled(prepared.recall)
        assert [each["text"] for each in found["conversation"]] == ["ask", "cut sh"]


@pytest.mark.spec("SREF-12")
@pytest.mark.parametrize(
    "text", ["</session-recall>", "<session-recall>", "</SESSION-RECALL >", "a < b <!-- \u2028 '\"\\"]
)
async def test_hostile_text_stays_data(stage: Any, recalled: Any, text: str) -> None:
    async with stage() as it:
        past = it.past(f"id {text}", cwd=f"/{text}")
        past.user(text)
        prepared = await it.service.prepare(it.agent, "look", [{"id": f"id {text}", "label": text}])
        (found,) = recalled(prepared.recall)
        assert (found["session_id"], found["label"], found["cwd"]) == (f"id {text}", text, f"/{text}")
        assert found["conversation"] == [{"role": "user", "text": text}]
        assert prepared.recall.text.count("<") == 2


@pytest.mark.spec("SREF-13")
async def test_what_is_said_later_is_not_in_it(stage: Any, recalled: Any) -> None:
    async with stage() as it:
        past = it.past("a")
        past.user("before")
        prepared = await it.service.prepare(it.agent, "look", [{"id": "a"}])
        past.user("after")
        (found,) = recalled(prepared.recall)
        assert (found["conversation"], found["captured_through_seq"]) == ([{"role": "user", "text": "before"}], 0)


@pytest.mark.spec("SREF-14")
async def test_an_empty_session_without_a_directory(stage: Any, recalled: Any) -> None:
    async with stage() as it:
        it.past("a", cwd="")
        prepared = await it.service.prepare(it.agent, "look", [{"id": "a"}])
        assert recalled(prepared.recall) == [
            {"session_id": "a", "label": "a", "cwd": None, "captured_through_seq": None, "conversation": []}
        ]


@pytest.mark.spec("SREF-20", "SREF-21")
async def test_each_session_has_the_whole_budget(stage: Any, recalled: Any) -> None:
    async with stage(max_reference_bytes=1_000) as it:
        for name in "abc":
            it.past(name).user("x" * 5_000)
        prepared = await it.service.prepare(it.agent, "look", [{"id": name} for name in "abc"])
        for found in recalled(prepared.recall):
            assert len(found["conversation"][0]["text"]) > 850
        it.past("long" * 300).user("x")
        error = await refused(it, {"id": "a"}, {"id": "long" * 300})
        assert error.problem is ReferenceProblem.BUDGET_EXCEEDED


async def test_a_service_may_be_made_by_hand(store: MemoryStore, past: Any, recalled: Any) -> None:
    past("a").user("hello")
    service = SessionReferences(store, Config(max_references=1))
    prepared = await service.prepare(None, "look", [{"id": "a"}])
    assert prepared.recall is not None
    assert recalled(prepared.recall)[0]["conversation"] == [{"role": "user", "text": "hello"}]


@pytest.mark.spec("SREF-13")
async def test_a_session_that_another_process_is_writing_is_copied_as_far_as_it_is(
    stage: Any, tmp_path: Path, recalled: Any
) -> None:
    """Each copy is a beginning of what is written, whole messages only, and never shorter than the one before."""
    store = FileStore(tmp_path)
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(tmp_path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        writer.stdout.readline()
        async with stage(store=store, max_reference_bytes=10_000_000) as it:
            seen = 0
            for _ in range(8):
                prepared = await it.service.prepare(it.agent, "look", [{"id": "written"}])
                (found,) = recalled(prepared.recall)
                numbers = [each["text"].split()[0] for each in found["conversation"]]
                assert numbers == [str(number) for number in range(len(numbers))]
                assert len(numbers) >= seen
                assert found["captured_through_seq"] == len(numbers) - 1
                seen = len(numbers)
            assert seen
        writer.stdin.close()
    assert writer.returncode == 0


async def test_a_session_with_a_torn_end_is_copied_up_to_it(stage: Any, tmp_path: Path, recalled: Any) -> None:
    store = FileStore(tmp_path)
    async with stage(store=store) as it:
        it.past("a").user("hello")
        with open(store.path("a"), "ab") as file:
            file.write(b'{"seq":1,"type":"user/mess')
        prepared = await it.service.prepare(it.agent, "look", [{"id": "a"}])
        assert recalled(prepared.recall)[0]["conversation"] == [{"role": "user", "text": "hello"}]
        store.path("a").write_bytes(b"no log\n")
        error = await refused(it, {"id": "a"})
        assert error.problem is ReferenceProblem.READ_FAILED
