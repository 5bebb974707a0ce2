"""Files that tools touch: which directories they add, when the conversation hears of it, and what becomes of it then."""

from __future__ import annotations

import contextvars
import logging
from typing import Any

import anyio
import pytest
from harness_agent_instructions._state import changes_in

from harness_core import Enter, ToolOutcome, ToolSchema, UserMessage, hookimpl
from harness_core.models import ScriptedAnswer
from harness_core.session import FileStore, InboxSpliced, StepEnd, TurnEnd

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def some_files(files: Any) -> None:
    files.put("/p/AGENTS.md", "Be kind.")
    files.put("/p/w/a/AGENTS.md", "In a.")
    files.put("/p/w/a/b/CLAUDE.md", "In b.")
    files.put("/p/w/c/AGENTS.md", "In c.")


def actions(message: UserMessage) -> list[str]:
    return [f"{change.action} {change.path.removeprefix('w/')}" for change in changes_in(message.source)]


def heard(it: Any) -> list[list[str]]:
    """What the conversation was told after its first list."""
    return [actions(message) for message in it.told[1:]]


@pytest.mark.spec("AGI-36")
async def test_a_read_below_the_working_directory_loads_every_directory_on_the_way(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "a/b/x.py"))
        assert it.entered() == [["p", "context", "facts"], ["context"]]
        assert heard(it) == [["set a/AGENTS.md", "set a/b/CLAUDE.md"]]
        assert {"/p/w/a/CLAUDE.md", "/p/w/a/b/AGENTS.local.md"} <= set(files.probes)
        text = it.told[1].text
        assert "From w/a/AGENTS.md, for work in w/a/." in text
        assert text.index("In a.") < text.index("In b.")


@pytest.mark.spec("AGI-36")
@pytest.mark.parametrize("tool", ["read", "write", "edit", "shell"])
async def test_only_file_tools_count_and_the_file_need_not_exist(stage: Any, tool: str) -> None:
    async with stage() as it:
        await it.turn("p", (tool, "c/new.py"))
        assert heard(it) == ([] if tool == "shell" else [["set c/AGENTS.md"]])


@pytest.mark.spec("AGI-37")
async def test_files_in_or_outside_the_working_directory_add_nothing(stage: Any, files: Any) -> None:
    files.put("/p/other/AGENTS.md", "Other.")
    async with stage() as it:
        await it.turn("p", ("read", "x.py"), ("read", "../other/x.py"), ("read", "/etc/x"), ("read", ""))
        assert heard(it) == []
        assert "/p/other/AGENTS.md" not in files.probes


@pytest.mark.spec("AGI-38")
async def test_touching_again_says_and_reads_nothing(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "a/x.py"))
        reads = len(files.reads)
        await it.turn("q", ("read", "a/x.py"), ("edit", "a/y.py"))
        assert (len(it.told), len(files.reads)) == (2, reads)


@pytest.mark.spec("AGI-40")
async def test_each_session_is_told_for_itself(stage: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        other = await it.harness.create_agent("b", cwd="/p/w")
        it.model.add(ScriptedAnswer(calls=[("read", {"file_path": "c/x.py"})]))
        await other.run("p")
        kinds = [message.source.kind for message in other.session.messages if isinstance(message, UserMessage)]
        assert kinds.count("agent-instructions") == 2


@pytest.mark.spec("AGI-41", "AGI-42")
async def test_a_nested_file_that_is_edited_or_deleted_is_told_once(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        files.put("/p/w/c/AGENTS.md", "In c, edited.")
        await it.turn("q", ("edit", "c/AGENTS.md"))
        await it.turn("q")
        assert heard(it)[1:] == [["replace c/AGENTS.md"]]
        files.remove("/p/w/c/AGENTS.md")
        await it.turn("r")
        await it.turn("r", ("read", "c/x.py"))
        assert heard(it)[2:] == [["remove c/AGENTS.md"]]


@pytest.mark.spec("AGI-43")
async def test_of_two_siblings_only_the_deleted_one_is_revoked(stage: Any, files: Any) -> None:
    files.put("/p/w/c/CLAUDE.md", "Also in c.")
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        files.remove("/p/w/c/AGENTS.md")
        await it.turn("q")
        assert heard(it) == [["set c/AGENTS.md", "set c/CLAUDE.md"], ["remove c/AGENTS.md"]]


@pytest.mark.spec("AGI-44", "AGI-46")
@pytest.mark.parametrize("where", ["/p/w/c", "/p"])
async def test_a_later_sibling_that_becomes_a_duplicate_is_revoked_and_comes_back(
    stage: Any, files: Any, where: str
) -> None:
    files.put(f"{where}/AGENTS.md", "First.")
    files.put(f"{where}/CLAUDE.md", "Second.")
    shown = "c/" if where == "/p/w/c" else ""
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        told = len(it.told)
        files.put(f"{where}/CLAUDE.md", " First. \n")
        await it.turn("q")
        assert actions(it.told[told]) == [f"remove {shown}CLAUDE.md"]
        files.put(f"{where}/AGENTS.md", "First, changed.")
        await it.turn("q")
        assert actions(it.told[told + 1]) == [f"replace {shown}AGENTS.md", f"set {shown}CLAUDE.md"]
        await it.turn("q")
        assert len(it.told) == told + 2


@pytest.mark.spec("AGI-45")
async def test_an_earlier_sibling_edited_into_a_duplicate(stage: Any, files: Any) -> None:
    files.put("/p/w/c/CLAUDE.md", "Second.")
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        files.put("/p/w/c/AGENTS.md", "Second.")
        await it.turn("q")
        assert heard(it)[1] == ["replace c/AGENTS.md", "remove c/CLAUDE.md"]


@pytest.mark.spec("AGI-47")
async def test_a_revoked_file_that_appears_again_is_new(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        files.remove("/p/w/c/AGENTS.md")
        await it.turn("q")
        files.put("/p/w/c/AGENTS.md", "In c.")
        await it.turn("q")
        await it.turn("q")
        assert heard(it) == [["set c/AGENTS.md"], ["remove c/AGENTS.md"], ["set c/AGENTS.md"]]


@pytest.mark.spec("AGI-47")
async def test_a_tombstone_that_cannot_be_looked_at_is_ignored(stage: Any, files: Any) -> None:
    files.put("/p/w/c/CLAUDE.md", "Also.")
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        files.remove("/p/w/c/AGENTS.md")
        await it.turn("q")
        files.unavailable.add("/p/w/c/AGENTS.md")
        files.put("/p/w/c/CLAUDE.md", "Also, changed.")
        await it.turn("q")
        assert heard(it)[2] == ["replace c/CLAUDE.md"]
        files.unavailable.clear()
        files.put("/p/w/c/AGENTS.md", "In c.")
        await it.turn("q")
        assert heard(it)[3] == ["set c/AGENTS.md"]


# --- what waits -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGI-48")
async def test_what_waits_is_composed_anew_when_its_directory_is_touched_again(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        await it.touch("c/x.py")
        (first,) = it.waiting
        assert actions(first) == ["set c/AGENTS.md"]
        await it.touch("c/x.py")
        assert it.waiting == [first]
        files.put("/p/w/c/AGENTS.md", "In c, later.")
        await it.touch("c/x.py")
        (second,) = it.waiting
        assert (second.id != first.id, "later" in second.text) == (True, True)
        await it.turn("q")
        assert it.entered() == [["context", "q"]]
        assert heard(it) == [["set c/AGENTS.md"]]


@pytest.mark.spec("AGI-49")
async def test_what_was_never_told_needs_no_revoking(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        await it.touch("c/x.py")
        files.remove("/p/w/c/AGENTS.md")
        await it.touch("c/x.py")
        assert it.waiting == []
        await it.turn("q")
        assert heard(it) == []


@pytest.mark.spec("AGI-51")
async def test_two_touches_at_once_wait_in_one_message(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        files.gate = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.touch, "a/x.py")
            tasks.start_soon(it.touch, "c/x.py")
            await anyio.wait_all_tasks_blocked()
            files.gate.set()
        await anyio.wait_all_tasks_blocked()
        (waiting,) = it.waiting
        assert actions(waiting) == ["set a/AGENTS.md", "set c/AGENTS.md"]


@pytest.mark.spec("AGI-51")
async def test_what_waits_and_what_is_touched_later_wait_together(stage: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        await it.touch("a/x.py")
        await it.touch("c/x.py")
        (waiting,) = it.waiting
        assert actions(waiting) == ["set a/AGENTS.md", "set c/AGENTS.md"]


async def test_what_waits_from_an_earlier_process_is_kept_when_another_directory_is_touched(
    stage: Any, files: Any, tmp_path: Any
) -> None:
    store = FileStore(tmp_path)
    async with stage(store=store) as it:
        await it.turn("p")
        await it.touch("a/x.py")
    async with stage(store=store, resume=True) as it:
        await it.touch("c/x.py")
        (waiting,) = it.waiting
        assert actions(waiting) == ["set a/AGENTS.md", "set c/AGENTS.md"]
        probes = len(files.probes)
        decision = await it.propose("q")
        assert decision.messages[1] == waiting
        assert len(files.probes) == probes


async def test_what_waits_of_the_first_directories_and_what_is_touched_wait_together(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        files.put("/p/AGENTS.md", "Be stern.")
        it.gate.decide = lambda decision: Enter([])
        await it.turn("q")
        assert [actions(message) for message in it.waiting] == [["replace AGENTS.md"]]
        await it.touch("c/x.py")
        (waiting,) = it.waiting
        assert actions(waiting) == ["replace AGENTS.md", "set c/AGENTS.md"]


async def test_a_name_that_is_no_candidate_any_more_is_taken_back(stage: Any, files: Any, tmp_path: Any) -> None:
    files.remove("/p/AGENTS.md")
    store = FileStore(tmp_path)
    async with stage(store=store) as it:
        await it.turn("p", ("read", "c/x.py"))
    async with stage(store=store, resume=True, instruction_file_candidates=["CLAUDE.md"]) as it:
        await it.turn("q")
        await it.turn("q")
        assert [actions(message) for message in it.told] == [["set c/AGENTS.md"], ["remove c/AGENTS.md"]]


@pytest.mark.spec("AGI-52")
async def test_a_step_that_is_aborted_on_its_way_loses_no_directory(stage: Any) -> None:
    class Outer:
        @hookimpl(tryfirst=True)
        async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
            decision = await call_next()
            if armed:
                armed.clear()
                step.agent.cancel(keep_queue=True)
                await anyio.lowlevel.checkpoint()
            return decision

    armed: list[bool] = []
    async with stage() as it:
        await it.harness.install(Outer())
        await it.turn("p")
        await it.touch("a/x.py")
        armed.append(True)
        await it.turn("q")
        assert (it.waiting, len(it.told)) == ([], 1)
        await it.touch("c/x.py")
        (waiting,) = it.waiting
        assert actions(waiting) == ["set a/AGENTS.md", "set c/AGENTS.md"]
        await it.turn("r")
        assert heard(it) == [["set a/AGENTS.md", "set c/AGENTS.md"]]


@pytest.mark.spec("AGI-53")
async def test_a_step_that_a_sibling_tool_aborts_leaves_the_context_to_the_next_turn(stage: Any) -> None:
    async with stage() as it:

        async def stop(call: Any) -> str:
            call.agent.cancel()
            await anyio.sleep_forever()
            return ""

        it.harness.root.tools.register(ToolSchema("stop"), stop)
        it.model.add(ScriptedAnswer(calls=[("read", {"file_path": "c/x.py"}), ("stop", {})]))
        await it.turn("p")
        assert [event.data.reason for event in it.session.events if isinstance(event.data, TurnEnd)] == ["aborted"]
        (waiting,) = it.waiting
        assert actions(waiting) == ["set c/AGENTS.md"]
        await it.turn("q")
        await it.turn("r")
        assert heard(it) == [["set c/AGENTS.md"]]
        assert it.entered(-2) == [["context", "q"]]


async def test_a_tool_that_concludes_the_turn_leaves_the_context_to_the_next_one(stage: Any) -> None:
    async with stage() as it:
        it.harness.root.tools.register(ToolSchema("end"), lambda call: ToolOutcome(content="", conclude=True))
        it.model.add(ScriptedAnswer(calls=[("read", {"file_path": "c/x.py"}), ("end", {})]))
        await it.turn("p")
        assert len(it.waiting) == 1
        assert len(it.model.requests) == 1
        await it.turn("q")
        assert it.entered() == [["context", "q"]]


@pytest.mark.spec("AGI-55")
async def test_a_directory_that_found_no_room_is_not_marked_and_loads_when_it_is_touched_again(
    stage: Any, files: Any
) -> None:
    files.put("/p/w/a/AGENTS.md", "In a. " * 100)
    files.put("/p/w/a/b/CLAUDE.md", "In b. " * 100)
    async with stage(max_bytes=1400) as it:
        await it.turn("p", ("read", "a/b/x.py"))
        assert heard(it) == [["set a/b/CLAUDE.md"]]
        assert "w/a/AGENTS.md" in it.told[1].text
        await it.turn("q")
        assert len(heard(it)) == 1
        await it.turn("r", ("read", "a/x.py"))
        assert heard(it)[1:] == [["set a/AGENTS.md"]]


async def test_what_finds_no_room_at_all_is_tried_again_without_a_message(stage: Any, files: Any) -> None:
    files.remove("/p/AGENTS.md")
    async with stage(max_bytes=60) as it:
        await it.turn("p", ("read", "c/x.py"))
        assert it.told == []
        reads = files.reads.count("/p/w/c/AGENTS.md")
        await it.turn("q")
        assert (it.told, files.reads.count("/p/w/c/AGENTS.md") > reads) == ([], True)


@pytest.mark.spec("AGI-56")
async def test_a_full_list_and_a_removal_are_one_message_with_two_blocks(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        entries = list(it.session.surface.entries)
        place = next(seq for seq in entries if getattr(it.session.surface.message(seq), "id", None) == it.told[0].id)
        from harness_core.session import SurfaceReplace, UserMessageLogged

        summary = UserMessage(id="summary", content="summary")
        it.session.append(UserMessageLogged(message=summary), SurfaceReplace(start=place, end=place, sources=[place]))
        files.remove("/p/w/c/AGENTS.md")
        await it.turn("q")
        message = it.told[2]
        assert actions(message) == ["set AGENTS.md", "remove c/AGENTS.md"]
        assert len(message.content) == 2
        assert message.source.data["baseline"] is True


# --- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AGI-59")
async def test_touches_inside_an_open_step_wait_for_its_end(stage: Any, files: Any) -> None:
    async with stage() as it:
        seen: list[int] = []

        async def look(call: Any) -> str:
            await anyio.wait_all_tasks_blocked()
            seen.append(files.probes.count("/p/w/c/AGENTS.md"))
            return "done"

        it.harness.root.tools.register(ToolSchema("look"), look)
        it.model.add(ScriptedAnswer(calls=[("read", {"file_path": "c/x.py"}), ("look", {})]))
        await it.turn("p")
        assert seen == [0]
        ends = [event.seq for event in it.session.events if isinstance(event.data, StepEnd)]
        told = [event.seq for event in it.session.events if getattr(event.data, "message", None) is it.told[1]]
        assert told[0] > ends[0]
        # What goes on in the same turn never passes through the inbox.
        assert not any(isinstance(e.data, InboxSpliced) and it.told[1] in e.data.inserted for e in it.session.events)


@pytest.mark.spec("AGI-59")
async def test_no_step_that_is_proposed_meanwhile_hears_of_touches_inside_an_open_one(stage: Any) -> None:
    async with stage() as it:
        seen: list[Any] = []

        async def look(call: Any) -> str:
            await it.call("read", "a/x.py")
            seen.extend((await it.harness.prepare_step(it.agent, ["r"])).messages)
            return "done"

        it.harness.root.tools.register(ToolSchema("look"), look)
        it.model.add(ScriptedAnswer(calls=[("read", {"file_path": "c/x.py"}), ("look", {}), ("look", {})]))
        await it.turn("p")
        assert {message.text for message in seen} == {"r"}
        assert heard(it) == [["set a/AGENTS.md", "set c/AGENTS.md"]]


async def test_a_call_whose_result_is_never_logged_counts_for_nothing(stage: Any) -> None:
    async with stage() as it:

        async def look(call: Any) -> str:
            async with anyio.create_task_group() as tasks:
                # Another task of the host, outside of this call but while the step is open.
                contextvars.Context().run(tasks.start_soon, it.call, "read", "c/x.py")
            return "done"

        it.harness.root.tools.register(ToolSchema("look"), look)
        it.model.add(ScriptedAnswer(calls=[("look", {})]))
        await it.turn("p")
        await it.turn("q")
        assert heard(it) == []
        assert not it.plugin.plugin._talks[it.session].unconfirmed


@pytest.mark.spec("AGI-59")
async def test_touches_outside_of_any_step_are_looked_after_at_once(stage: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        await it.touch("c/x.py")
        assert [actions(message) for message in it.waiting] == [["set c/AGENTS.md"]]


async def test_a_nested_context_that_a_compaction_hid_comes_back_when_it_is_touched(stage: Any) -> None:
    async with stage() as it:
        await it.turn("p", ("read", "c/x.py"))
        it.forget()
        await it.turn("q")
        assert heard(it)[1:] == [["set AGENTS.md"]]
        await it.turn("r", ("read", "c/x.py"))
        assert heard(it)[2:] == [["set c/AGENTS.md"]]


# --- results ----------------------------------------------------------------------------------------------------------


async def test_a_failed_call_counts_for_nothing(stage: Any) -> None:
    async with stage() as it:
        it.harness.root.tools.register(ToolSchema("x"), lambda call: "x")
        await it.turn("p")
        await it.call("read", "c/x.py", ToolOutcome(content="no", error="io"))
        await anyio.wait_all_tasks_blocked()
        assert it.waiting == []


class Blocking:
    """Blocks a result, or a call, further out."""

    def __init__(self, before: bool) -> None:
        self.before = before

    @hookimpl(tryfirst=True)
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        if self.before:
            return ToolOutcome(content="denied", error="denied")
        await call_next()
        return ToolOutcome(content="blocked", error="blocked")


@pytest.mark.parametrize("before", [True, False])
async def test_a_result_that_a_listener_further_out_blocks_counts_for_nothing(stage: Any, before: bool) -> None:
    async with stage() as it:
        await it.harness.install(Blocking(before))
        await it.turn("p", ("read", "c/x.py"))
        assert heard(it) == []


async def test_arguments_count_as_they_are_carried_out(stage: Any) -> None:
    class Redirect:
        @hookimpl
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            return await call_next(call.with_arguments(file_path="c/x.py"))

    async with stage() as it:
        await it.harness.install(Redirect())
        await it.turn("p", ("read", "a/x.py"))
        assert heard(it) == [["set c/AGENTS.md"]]


async def test_a_listener_that_answers_a_call_itself_has_it_counted_as_it_came(stage: Any) -> None:
    class Cache:
        @hookimpl
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            return ToolOutcome(content="from the cache")

    async with stage() as it:
        await it.harness.install(Cache())
        await it.turn("p", ("read", "c/x.py"))
        assert heard(it) == [["set c/AGENTS.md"]]


@pytest.mark.parametrize("outer", [ToolOutcome(content="fine"), ToolOutcome(content="no", error="failed")])
async def test_calls_inside_a_call_count_when_the_outermost_one_is_over_however_it_ends(
    stage: Any, outer: ToolOutcome
) -> None:
    async with stage() as it:
        await it.turn("p")
        seen: list[Any] = []

        async def inside() -> None:
            await it.call("read", "c/x.py")
            await it.call("read", "a/x.py", ToolOutcome(content="no", error="io"))
            await anyio.wait_all_tasks_blocked()
            seen.append(it.waiting)

        await it.call("batch", None, outer, inside=inside)
        await anyio.wait_all_tasks_blocked()
        assert seen == [[]]
        assert [actions(message) for message in it.waiting] == [["set c/AGENTS.md"]]


async def test_a_call_that_raises_hands_on_what_calls_inside_it_touched(stage: Any) -> None:
    async with stage() as it:
        await it.turn("p")

        async def inside() -> None:
            await it.call("read", "c/x.py")
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await it.call("batch", None, inside=inside)
        await anyio.wait_all_tasks_blocked()
        assert len(it.waiting) == 1


async def test_a_call_that_a_tool_left_running_stands_for_itself(stage: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        go = anyio.Event()

        async def later() -> None:
            await go.wait()
            await it.call("read", "c/x.py")

        async with anyio.create_task_group() as tasks:

            async def inside() -> None:
                tasks.start_soon(later)

            await it.call("batch", None, inside=inside)
            go.set()
        await anyio.wait_all_tasks_blocked()
        assert len(it.waiting) == 1


async def test_parallel_calls_do_not_meet(stage: Any) -> None:
    async with stage() as it:
        it.harness.root.tools.register(ToolSchema("pread"), lambda call: "x", parallel_safe=True)

        async def slow(call: Any) -> str:
            await anyio.sleep(0)
            return "done"

        child = it.agent.scope
        for name in ("read", "edit"):
            child.tools.register(ToolSchema(name), slow, parallel_safe=True)
        await it.turn("p", ("read", "a/x.py"), ("edit", "c/x.py"), ("shell", "d/x.py"))
        assert heard(it) == [["set a/AGENTS.md", "set c/AGENTS.md"]]


# --- containment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside_a_turn", [True, False])
async def test_an_error_where_a_tool_worked_is_a_warning_and_nothing_else(
    stage: Any, files: Any, caplog: pytest.LogCaptureFixture, inside_a_turn: bool
) -> None:
    async with stage() as it:
        await it.turn("p")
        usual = files.info

        async def broken(path: str) -> Any:
            if path.startswith("/p/w/c"):
                raise RuntimeError("the service is broken")
            return await usual(path)

        files.info = broken
        with caplog.at_level(logging.WARNING, "harness.plugin.agent-instructions"):
            if inside_a_turn:
                await it.turn("q", ("read", "c/x.py"), ("read", "a/x.py"))
                assert heard(it) == [["set a/AGENTS.md"]]
            else:
                await it.touch("c/x.py", "a/x.py")
                assert [actions(message) for message in it.waiting] == [["set a/AGENTS.md"]]
        assert "the service is broken" in caplog.text
        assert all(event.data.reason == "completed" for event in it.session.events if isinstance(event.data, TurnEnd))


@pytest.mark.spec("AGI-60")
async def test_after_it_is_taken_out_nothing_is_put_into_the_inbox_any_more(stage: Any, files: Any) -> None:
    async with stage() as it:
        await it.turn("p")
        files.gate = anyio.Event()
        await it.call("read", "c/x.py")
        await anyio.wait_all_tasks_blocked()
        before = len(it.session.events)
        await it.plugin.aclose()
        await anyio.wait_all_tasks_blocked()
        assert not it.plugin.plugin._projections
        files.gate.set()
        await anyio.wait_all_tasks_blocked()
        assert (it.waiting, len(it.session.events)) == ([], before)


async def test_an_agent_that_is_closed_meanwhile_gets_nothing(
    stage: Any, files: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage() as it:
        await it.turn("p")
        files.gate = anyio.Event()
        await it.call("read", "c/x.py")
        await anyio.wait_all_tasks_blocked()
        await it.agent.aclose()
        files.gate.set()
        await anyio.wait_all_tasks_blocked()
        assert caplog.text == ""


async def test_what_is_remembered_of_a_session_goes_with_it(stage: Any) -> None:
    import gc

    async with stage() as it:
        plugin = it.plugin.plugin
        other = await it.harness.create_agent("b", cwd="/p/w")
        it.model.add(ScriptedAnswer(calls=[("read", {"file_path": "c/x.py"})]))
        await other.run("p")
        assert len(plugin._talks) == 1
        await other.aclose()
        del other
        gc.collect()
        assert len(plugin._talks) == 0
