"""The one order of messages in a step, whatever the order in which plugins are loaded (PRE-05)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest
from harness_agent_instructions import AgentInstructions
from harness_skills import Skills
from harness_time import TimeContext
from harness_workspace import Workspace

from harness_core import Enter, Harness, PluginUse, Source, UserMessage, hookimpl
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedModel

pytestmark = pytest.mark.anyio


class Facts:
    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.context("facts", "It rains.", order=0)


@attrs.define(eq=False)
class Adds:
    """A listener that puts one message somewhere, as others do."""

    what: str
    where: Any

    async def add(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        if not isinstance(decision, Enter) or step.step > 1:
            return decision
        message = UserMessage(
            id=f"{self.what}-{step.turn}", content=self.what, source=Source("plugin", None, self.what)
        )
        place = self.where(decision.messages)
        return Enter((*decision.messages[:place], message, *decision.messages[place:]))


class Outer(Adds):
    @hookimpl(tryfirst=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await self.add(step, call_next)


class Ordinary(Adds):
    @hookimpl
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await self.add(step, call_next)


def after_first(messages: Any) -> int:
    return next(place for place, message in enumerate(messages) if message.text == "one /pdf") + 1


def name(message: UserMessage) -> str:
    kind = message.source.kind
    if kind == "plugin":
        return message.source.plugin or ""
    return message.text if kind == "user" else kind


ORDERS = list(itertools.permutations(("instructions", "skills", "note")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    skill = tmp_path / ".agents" / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads.\n---\nBody.")
    return tmp_path


def after_facts(messages: Any) -> int:
    return next(place for place, message in enumerate(messages) if message.source.plugin == "harness") + 1


def uses() -> dict[str, PluginUse]:
    """All plugins, made anew."""
    instructions = AgentInstructions(environ={}, user_home="/nowhere")
    return {
        "workspace": PluginUse(plugin=Workspace),
        "instructions": PluginUse(plugin=instructions, config={"max_bytes": 9000}),
        "skills": PluginUse(plugin=Skills(user_home="/nowhere")),
        "note": PluginUse(plugin=Ordinary("note", after_facts), name="note"),
        "recall": PluginUse(plugin=Outer("recall", after_first), name="recall"),
        "time": PluginUse(plugin=TimeContext(local_zone=lambda: "UTC")),
        "location": PluginUse(plugin=Outer("location", lambda messages: 0), name="location"),
        "facts": PluginUse(plugin=Facts()),
    }


@pytest.mark.spec("PRE-04", "PRE-05")
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("others", ["first", "last"])
async def test_one_order_of_messages_in_every_order_of_loading(
    project: Path, order: tuple[str, ...], others: str
) -> None:
    outer = ["workspace", "facts", "recall", "location", "time"]
    names = [*outer, *order] if others == "first" else [*order, *outer[::-1]]
    plugins = uses()
    agents = AgentSettings(config=CallConfig(provider="script", model="m"), debug=True)
    async with Harness(plugins=[plugins[each] for each in names], autoload=False, agents=agents) as harness:
        harness.root.models.register("script", ScriptedModel(otherwise="fine"))
        agent = await harness.create_agent("a", cwd=project)
        agent.inject("one /pdf")
        await agent.run("two")
        entered = [name(message) for message in agent.session.messages if isinstance(message, UserMessage)]
        assert entered == [
            "location", "one /pdf", "recall", "two", "agent-instructions", "harness", "note",
            "skill-catalog", "skill-invocation", "time-context",
        ]  # fmt: skip
