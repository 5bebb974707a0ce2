"""A thousand agents come, work and go, and nothing of them is left."""

from __future__ import annotations

import gc
import os
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness_core.agent import Agent
from harness_core.hooks import hookimpl
from harness_core.models import ScriptedAnswer, ToolSchema
from harness_core.scopes import ScopeNode
from harness_core.session import FileStore, Session

pytestmark = pytest.mark.anyio

AGENTS = 1_000


class Watch:
    @hookimpl
    def session_event(self, session: Any, event: Any) -> None:
        pass

    @hookimpl
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await call_next()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


def tasks() -> int:
    return len(anyio.get_running_tasks())


def counted() -> Counter[str]:
    gc.collect()
    kinds = (Agent, Session, ScopeNode)
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds))


@pytest.mark.spec("CANCEL-03")
async def test_nothing_is_left_of_a_thousand_agents(open_stage: Any, tmp_path: Path) -> None:
    answers = ScriptedAnswer(calls=[("look", {})])

    def prepare(harness: Any) -> None:
        harness.root.tools.register(ToolSchema("look"), lambda call: "seen")
        harness.root.prompt.context("now", "sunny", order=1)

    async with open_stage(Watch(), prepare=prepare, store=FileStore(tmp_path)) as stage:
        harness = stage.harness

        async def one(number: int) -> weakref.ref[Agent]:
            stage.model.add(answers, "done")
            agent = await harness.create_agent(
                f"n{number}", setup=lambda scope: scope.prompt.section("own", "Own.", order=3)
            )
            if number % 3 == 0:
                agent.followup("left in the middle")
            else:
                assert (await agent.run("hi")).ok
            await (agent.aclose() if number % 2 else agent.scope.aclose())
            stage.model.requests.clear()
            return weakref.ref(agent)

        await one(-3)
        before = (descriptors(), tasks(), counted(), len(harness.root.effects), len(harness.root.attachments))
        gone = [await one(number) for number in range(AGENTS)]
        after = (descriptors(), tasks(), counted(), len(harness.root.effects), len(harness.root.attachments))
        assert after == before
        assert not [each for each in gone if each() is not None]
        assert not list(tmp_path.glob("n*.lock"))
        assert list(harness.agents) == ["a1"]
        assert harness.prompt.generation > AGENTS
