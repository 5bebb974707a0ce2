"""What an agent's turn makes of the registry: its order of tools, and the context that providers get."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core import AssembleContext, Harness, PromptSettings, ToolSchema
from harness_core.models.scripted import ScriptedModel
from harness_core.prompt import UNLISTED_TOOLS

pytestmark = pytest.mark.anyio


@pytest.mark.spec("TOOL-15")
async def test_the_header_and_the_request_carry_the_configured_order() -> None:
    model = ScriptedModel("done")
    async with Harness(PromptSettings(tool_order=["write", UNLISTED_TOOLS]), autoload=False) as harness:
        harness.root.models.register("scripted", model)
        harness.root.prompt.tools(lambda _: [ToolSchema("read"), ToolSchema("write")])
        agent = await harness.create_agent("a", provider="scripted")
        assert (await agent.run("hello")).ok
        assert [tool.name for tool in model.requests[0].header.tools] == ["write", "read"]
        assert agent.session.header is not None
        assert [tool.name for tool in agent.session.header.tools] == ["write", "read"]


@pytest.mark.spec("TOOL-15", "PRE-02")
async def test_an_unknown_listed_name_ends_the_turn_before_any_step() -> None:
    model = ScriptedModel("never")
    async with Harness(PromptSettings(tool_order=["absent", UNLISTED_TOOLS]), autoload=False) as harness:
        harness.root.models.register("scripted", model)
        agent = await harness.create_agent("a", provider="scripted")
        result = await agent.run("hello")
        types = [event.type for event in agent.session.events]
    assert result.reason == "error"
    assert result.failure is not None
    assert "absent" in result.failure.message
    assert [each for each in types if not each.startswith("agent/")] == ["turn/start", "turn/end"]
    assert model.requests == []


@pytest.mark.spec("X-32", "UC-21")
async def test_providers_of_an_agents_assembly_see_agent_session_cwd_turn_and_step(tmp_path: Any) -> None:
    seen: list[AssembleContext] = []
    async with Harness(autoload=False) as harness:
        harness.root.models.register("scripted", ScriptedModel("one", "two"))
        harness.root.prompt.variable("cwd", lambda context: seen.append(context) or context.cwd)  # type: ignore[func-returns-value]
        harness.root.prompt.section("where", "in {{cwd}}", order=1)
        agent = await harness.create_agent("a", provider="scripted", cwd=tmp_path)
        await agent.run("hello")
        await agent.run("again")
        assert agent.session.header is not None
        assert f"in {tmp_path}" in agent.session.header.system
        context = AssembleContext.of(agent, turn=7)
        assert (context.scope, context.agent, context.session, context.turn) == (agent.scope, agent, agent.session, 7)
    assert [(each.agent, each.scope, each.cwd, each.turn, each.step) for each in seen] == [
        (agent, agent.scope, str(tmp_path), turn, 1) for turn in (1, 2)
    ]
