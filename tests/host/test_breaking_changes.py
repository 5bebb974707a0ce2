"""Changes of a composition at bad moments and with awkward plugins: the outcome stays that of a fresh start, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest

from harness_core import Harness, PluginContext, hookimpl
from harness_core.host import PluginSource
from harness_core.host.composition import AgentTable, Composition, ModelTable, PluginTable
from harness_core.session import HeaderWritten
from tests.host.test_applying import composed, differences, harness_of, outcome, seen, sources

pytestmark = pytest.mark.anyio


def source(name: str, plugin: Any) -> PluginSource:
    return PluginSource(name=name, load=lambda: plugin)


# --- models -------------------------------------------------------------------------------------------------------------


def answering(model: str | None, **rest: Any) -> Composition:
    made = composed()
    made.model = ModelTable(model=model, **rest)
    return made


def models_of(agent: Any) -> list[str | None]:
    return [event.data.header.config.model for event in agent.session.events if isinstance(event.data, HeaderWritten)]


async def test_agents_follow_the_default_only_where_nobody_chose_for_them() -> None:
    class Picks:
        @hookimpl
        def agent_request(self, config: Any, step: Any) -> Any:
            return attrs.evolve(config, model="picked") if step.agent.id == "listened to" else config

    async with harness_of(answering("small"), []) as harness:
        await harness.install(Picks)
        agents = {
            "follows": await harness.create_agent("follows"),
            "chosen": await harness.create_agent("chosen", model="huge"),
            "the same chosen": await harness.create_agent("the same chosen", model="small"),
            "listened to": await harness.create_agent("listened to"),
            "chosen later": await harness.create_agent("chosen later"),
        }
        for composition in (answering("small"), answering("large"), answering("large"), answering(None)):
            await harness.apply(composition)
            for agent in agents.values():
                assert (await agent.run("Hello.")).ok
            agents["chosen later"].configure(model="mine")
        assert {name: models_of(agent) for name, agent in agents.items()} == {
            "follows": ["small", "large", "scripted"],
            "chosen": ["huge"],
            "the same chosen": ["small"],
            "listened to": ["picked"],
            "chosen later": ["small", "mine"],
        }


async def test_an_agent_that_comes_up_during_a_change_has_the_new_default() -> None:
    async with harness_of(answering("small"), []) as harness:

        async def changes(_: Any) -> None:
            await harness.apply(answering("large"))

        agent = await harness.create_agent("a", setup=changes)
        assert (await agent.run("Hello.")).ok
        assert models_of(agent) == ["large"]


async def test_a_refused_change_leaves_the_models_of_agents_as_they_were() -> None:
    class Vetoes:
        hears = False

        @hookimpl
        def system_prompt_change(self) -> None:
            if Vetoes.hears:
                raise RuntimeError("not now")

    async with harness_of(answering("small", effort="high"), []) as harness:
        await harness.install(Vetoes)
        agent = await harness.create_agent("a")
        assert (await agent.run("Hello.")).ok
        Vetoes.hears = True
        with pytest.raises(RuntimeError, match="not now"):
            await harness.apply(answering("large"))
        assert (await agent.run("Hello.")).ok
        assert models_of(agent) == ["small"]
        Vetoes.hears = False
        await harness.apply(answering("large", effort="high"))
        assert (await agent.run("Hello.")).ok
        headers = [event.data.header.config for event in agent.session.events if isinstance(event.data, HeaderWritten)]
        assert [(config.model, config.effort) for config in headers] == [("small", "high"), ("large", "high")]
