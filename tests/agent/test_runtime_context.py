"""When a runtime-context snapshot enters the conversation, and when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.agent.runtime_context import CLEAR_MARKER, CORE_PLUGIN
from harness_core.hooks import Enter, PreStep, hookimpl
from harness_core.models import Source, TextBlock, UserMessage
from harness_core.session import APPEND, FileStore, HeaderWritten, SurfaceReplace, UserMessageLogged

pytestmark = pytest.mark.anyio


class Facts:
    """Two contexts whose texts a test can change."""

    def __init__(self, a: str = "", b: str = "") -> None:
        self.a, self.b = a, b

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.context("a", lambda context: self.a, order=1)
        ctx.prompt.context("b", lambda context: self.b, order=2)


def snapshots(stage: Any) -> list[UserMessage]:
    return [each.message for each in stage.data(UserMessageLogged) if each.message.source.plugin == CORE_PLUGIN]


def replace(stage: Any, start: int, end: int, text: str = "summary") -> None:
    surface = stage.agent.session.surface
    shadowed = [entry for entry in surface.entries if start <= entry <= end]
    stage.agent.session.append(
        UserMessageLogged(message=UserMessage(id=f"s{start}", content=text, source=Source("plugin", plugin="compact"))),
        SurfaceReplace(start=shadowed[0], end=shadowed[-1], sources=shadowed),
    )


@pytest.mark.spec("CTX-01")
async def test_nothing_recorded_and_nothing_now_gives_no_message(open_stage: Any) -> None:
    async with open_stage(Facts()) as stage:
        await stage.agent.run("hi")
        assert snapshots(stage) == []


@pytest.mark.spec("CTX-01", "UC-13")
async def test_a_snapshot_enters_in_full_when_it_changed_and_only_then(open_stage: Any) -> None:
    facts = Facts(a="sunny", b="noon")
    async with open_stage(facts) as stage:
        for _ in range(2):
            await stage.agent.run("hi")
        facts.b = "evening"
        await stage.agent.run("hi")
        first, second = snapshots(stage)
        assert first.text.endswith("sunny\n\nnoon") and second.text.endswith("sunny\n\nevening")
        assert (first.source.kind, first.source.form) == ("plugin", "snapshot")
        assert first.source.data == {
            "sections": [
                {"name": "a", "text": "sunny", "plugin": "facts"},
                {"name": "b", "text": "noon", "plugin": "facts"},
            ]
        }
        assert second.source.data["changed"] == ["b"]


@pytest.mark.spec("CTX-01")
async def test_what_became_empty_is_cleared_by_a_marker_once(open_stage: Any) -> None:
    facts = Facts(a="sunny")
    async with open_stage(facts) as stage:
        await stage.agent.run("hi")
        facts.a = ""
        for _ in range(3):
            await stage.agent.run("hi")
        _, marker = snapshots(stage)
        assert marker.text == CLEAR_MARKER
        assert "sections" not in marker.source.data
        facts.a = "sunny"
        await stage.agent.run("hi")
        assert len(snapshots(stage)) == 3


@pytest.mark.spec("CTX-02")
@pytest.mark.parametrize("resumed", [False, True])
async def test_a_replacement_that_covers_it_lets_it_be_reasserted(
    open_stage: Any, tmp_path: Any, resumed: bool
) -> None:
    store = FileStore(tmp_path)
    async with open_stage(Facts(a="sunny"), store=store) as stage:
        await stage.agent.run("hi")
        entries = stage.agent.session.surface.entries
        replace(stage, entries[0], entries[-1])
        if not resumed:
            await stage.agent.run("again")
            assert len(snapshots(stage)) == 2
            return
        await stage.agent.aclose()
    async with open_stage(Facts(a="sunny"), store=store, resume=True) as stage:
        await stage.agent.run("again")
        await stage.agent.run("and again")
        assert len(snapshots(stage)) == 2


@pytest.mark.spec("CTX-02")
@pytest.mark.parametrize("resumed", [False, True])
async def test_a_replacement_elsewhere_does_not(open_stage: Any, tmp_path: Any, resumed: bool) -> None:
    store = FileStore(tmp_path)
    async with open_stage(Facts(a="sunny"), store=store) as stage:
        await stage.agent.run("hi")
        said, _, answer = stage.agent.session.surface.entries
        replace(stage, said, said)
        replace(stage, answer, answer)
        if not resumed:
            await stage.agent.run("again")
        await stage.agent.aclose()
        assert len(snapshots(stage)) == 1
    async with open_stage(Facts(a="sunny"), store=store, resume=True) as stage:
        await stage.agent.run("again")
        assert len(snapshots(stage)) == 1


@pytest.mark.spec("CTX-02")
async def test_when_only_the_newest_is_taken_the_one_before_is_retained(open_stage: Any) -> None:
    facts = Facts(a="sunny")
    async with open_stage(facts) as stage:
        await stage.agent.run("hi")
        facts.a = "rain"
        await stage.agent.run("hi")
        newest = next(
            event.seq
            for event in reversed(stage.agent.session.events)
            if getattr(event.data, "message", None) is snapshots(stage)[-1]
        )
        replace(stage, newest, newest)
        facts.a = "sunny"
        await stage.agent.run("hi")
        assert len(snapshots(stage)) == 2
        facts.a = "rain"
        await stage.agent.run("hi")
        assert len(snapshots(stage)) == 3


@pytest.mark.spec("CTX-03", "PRE-03")
@pytest.mark.parametrize("how", ["dropped", "rewritten"])
async def test_a_candidate_that_a_listener_removed_is_proposed_again(open_stage: Any, how: str) -> None:
    class Edit:
        def __init__(self) -> None:
            self.proposed: list[str] = []

        @hookimpl
        async def agent_pre_step(self, step: PreStep, call_next: Any) -> Any:
            decision = await call_next()
            if step.candidate is None:
                return decision
            self.proposed.append(step.candidate.text)
            if len(self.proposed) > 2:
                return decision
            kept = tuple(m for m in decision.messages if m is not step.candidate)
            other = UserMessage(id="other", content="something else", source=Source("plugin", plugin="edit"))
            return Enter(kept if how == "dropped" else (*kept, other))

    edit = Edit()
    async with open_stage(edit, Facts(a="sunny")) as stage:
        for _ in range(4):
            await stage.agent.run("hi")
        assert len(edit.proposed) == 3
        assert len(snapshots(stage)) == 1


@pytest.mark.spec("CTX-04")
async def test_a_compacted_snapshot_that_is_empty_now_is_cleared_once(open_stage: Any) -> None:
    facts = Facts(a="sunny")
    async with open_stage(facts) as stage:
        await stage.agent.run("hi")
        entries = stage.agent.session.surface.entries
        replace(stage, entries[0], entries[-1])
        facts.a = ""
        for _ in range(3):
            await stage.agent.run("hi")
        assert [message.text for message in snapshots(stage)][1:] == [CLEAR_MARKER]


@pytest.mark.spec("CTX-05")
async def test_a_malformed_owned_message_counts_as_different(open_stage: Any) -> None:
    async with open_stage(Facts(a="sunny")) as stage:
        await stage.agent.run("hi")
        (good,) = snapshots(stage)
        blocks = (TextBlock(good.text), TextBlock(""))
        odd = UserMessage(id="odd", content=blocks, source=good.source)
        stage.agent.session.append(UserMessageLogged(message=odd), APPEND)
        await stage.agent.run("hi")
        await stage.agent.run("hi")
        assert [message.text for message in snapshots(stage)] == [good.text, odd.text, good.text]


@pytest.mark.spec("CTX-06")
async def test_the_header_never_changes_because_of_a_context(open_stage: Any) -> None:
    facts = Facts(a="sunny")
    async with open_stage(facts) as stage:
        for text in ("sunny", "rain", "", "snow"):
            facts.a = text
            await stage.agent.run("hi")
        assert len(stage.data(HeaderWritten)) == 1
        assert len({request.header.system for request in stage.model.requests}) == 1
