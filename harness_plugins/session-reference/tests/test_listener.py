"""Mentions in what users say, followed in a running agent's steps."""

from __future__ import annotations

from typing import Any

import pytest
from harness_session_reference import ReferenceProblem, SessionReferenceError, mention, uri

from harness_core import Enter, Reject, Source, TextBlock, UserMessage
from harness_core.session import MemoryStore, StoredLog

pytestmark = pytest.mark.anyio


def kinds(it: Any) -> list[str]:
    return [
        message.source.kind if message.source.kind != "user" else message.text
        for message in it.session.messages
        if isinstance(message, UserMessage)
    ]


@pytest.mark.spec("X-01")
async def test_without_the_setting_a_mention_is_text(stage: Any) -> None:
    async with stage() as it:
        it.past("a").user("hello")
        await it.agent.run(f"see {mention('a', 'A')}")
        assert kinds(it) == [f"see {mention('a', 'A')}"]


@pytest.mark.spec("SREF-30", "PRE-05", "X-01")
async def test_a_recall_follows_each_message_that_mentions_a_session(stage: Any, recalled: Any) -> None:
    async with stage(mentions=True) as it:
        it.harness.root.prompt.context("facts", "It rains.", order=0)
        for name in "ab":
            it.past(name).user(f"hello {name}")
        it.agent.inject(f"one {mention('a', 'A')}")
        it.agent.inject("two")
        sent = it.agent.followup(f"three {uri('a')} and {mention('b', 'B')}, {mention('a', 'again')}.")
        await it.agent.when_idle()
        assert kinds(it) == [
            "one @A",
            "session-reference",
            "two",
            "three @a and @B, @again.",
            "session-reference",
            "plugin",
        ]
        first, second = [
            m for m in it.session.messages if getattr(m, "source", None) and m.source.kind == "session-reference"
        ]
        assert [each["session_id"] for each in recalled(first)] == ["a"]
        assert [(each["session_id"], each["label"]) for each in recalled(second)] == [("a", "a"), ("b", "B")]
        assert it.session.messages[3].id == sent.id


@pytest.mark.spec("SREF-28")
async def test_a_rejected_step_reads_nothing(stage: Any) -> None:
    class Counting(MemoryStore):
        reads = 0

        def read(self, session_id: str) -> StoredLog:
            self.reads += 1
            return super().read(session_id)

    store = Counting()
    async with stage(store=store, mentions=True) as it:
        it.inner.decide = lambda step, decision: Reject("no")
        await it.agent.run(f"see @[a]({uri('a')}x) {mention('gone')}")
        assert it.ends == ["blocked"]
        assert store.reads == 0


@pytest.mark.spec("SREF-29", "PRE-09")
async def test_a_mention_in_a_plugin_s_message_is_left_alone(stage: Any) -> None:
    async with stage(mentions=True) as it:
        message = UserMessage(id="p", content=mention("gone"), source=Source("plugin", None, "p"))
        it.agent.inject(message)
        await it.agent.run("hello")
        assert it.session.messages[0] is message
        assert kinds(it) == ["plugin", "hello"]


@pytest.mark.spec("SREF-29")
async def test_messages_without_mentions_are_the_same_objects(stage: Any) -> None:
    async with stage(mentions=True) as it:
        it.past("a").user("hello")
        one = it.agent.inject("one harness-session: is a scheme")
        await it.agent.run(mention("a"))
        assert it.session.messages[0] is one


@pytest.mark.spec("SREF-31")
async def test_the_other_blocks_of_a_message_are_kept(stage: Any) -> None:
    class Picture(TextBlock):
        """A block of a kind that this plugin knows nothing of."""

    async with stage(mentions=True) as it:
        it.past("a").user("hello")
        seen: list[Any] = []
        blocks = (TextBlock("one"), TextBlock(mention("a", "A")), Picture("picture"))
        prompt = UserMessage(id="u", content=blocks, source=Source(data={"rpc_id": "r"}))
        await it.agent.run(prompt)
        seen = [message for message in it.session.messages if getattr(message, "id", None) == "u"]
        (entered,) = seen
        assert [block.text for block in entered.content] == ["one", "@A", "picture"]
        assert isinstance(entered.content[2], Picture)
        assert entered.source == prompt.source


@pytest.mark.spec("SREF-03", "SREF-04", "SREF-06", "SREF-25")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (mention("here"), ReferenceProblem.SELF_REFERENCE),
        (mention("gone"), ReferenceProblem.READ_FAILED),
        (f"@[a]({uri('a')}x)", ReferenceProblem.INVALID_REFERENCE),
        (" ".join(map(uri, "abcd")), ReferenceProblem.TOO_MANY),
    ],
)
async def test_what_is_wrong_fails_the_turn_before_anything_enters(
    stage: Any, text: str, problem: ReferenceProblem, caplog: Any
) -> None:
    async with stage(mentions=True) as it:
        it.past("a").user("hello")
        it.agent.inject(mention("a"))
        await it.agent.run(text)
        assert it.ends == ["error"]
        assert "step/start" not in [event.type for event in it.session.events]
        error = next(record.exc_info[1] for record in caplog.records if record.exc_info)
        assert isinstance(error, SessionReferenceError)
        assert error.problem is problem
        assert (await it.agent.run("hello")).ok


@pytest.mark.spec("SREF-36", "PRE-06")
async def test_a_recall_is_history_whatever_becomes_of_its_source(stage: Any) -> None:
    store = MemoryStore()
    async with stage(store=store, mentions=True) as it:
        past = it.past("a")
        past.user("hello")
        await it.agent.run(mention("a"))
        before = [message.to_json() for message in it.session.messages]
        past.session.close()
        store.delete("a")
    async with stage(store=store, mentions=True, resume=True) as it:
        assert [message.to_json() for message in it.session.messages] == before
        await it.agent.run("go on")
        assert kinds(it)[-1] == "go on"
        assert kinds(it).count("session-reference") == 1


@pytest.mark.spec("X-03")
async def test_a_step_that_nothing_enters_stays_one(stage: Any) -> None:
    async with stage(mentions=True) as it:
        it.inner.decide = lambda step, decision: Enter(())
        await it.agent.run(mention("gone"))
        assert it.ends == ["completed"]


async def test_a_loop_of_one_s_own_follows_mentions_too(stage: Any) -> None:
    async with stage(mentions=True) as it:
        it.past("a").user("hello")
        prepared = await it.harness.prepare_step(it.harness.root, [mention("a", "A")])
        assert [message.source.kind for message in prepared.messages] == ["user", "session-reference"]
