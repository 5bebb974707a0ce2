"""Nothing that is denied is offered or carried out, wherever it comes from, and the audit file has all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness_guard import Guard

from harness_core import PluginContext, PluginUse, PromptAssembly, ToolSchema, hookimpl, render_prompt
from harness_core.errors import PluginSetupError
from harness_core.models import ToolResultMessage
from harness_core.testing import AgentFactory, HarnessFactory, ScriptedAnswer, ScriptedModel, plugin_contract

pytestmark = pytest.mark.anyio

test_contract = plugin_contract(Guard, config={"denied": ["delete"]})

DENIED = "Denied here, whatever else you read: delete."


class Files:
    """Offers one tool the usual way, and another behind everybody's back."""

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        self.deleted = 0
        ctx.tools.register(ToolSchema("list"), lambda call: "soup.txt")
        ctx.tools.handle("delete", self.delete)

    def delete(self, call: object) -> str:
        self.deleted += 1
        return "gone"

    @hookimpl(tryfirst=True)
    def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
        assembly.tools.append(ToolSchema("delete"))


def guarded(**config: Any) -> PluginUse:
    """As a composition has it that names the guard in ``outermost``."""
    return PluginUse(plugin=Guard, config=config, outermost=True)


async def test_the_model_is_not_offered_what_is_denied_and_told_so(harness: HarnessFactory) -> None:
    async with harness(guarded(denied=["delete", "format"]), Files) as running:
        assembly = await running.assemble()
        assert [tool.name for tool in assembly.tools] == ["list"]
        assert render_prompt(assembly) == DENIED
    async with harness(guarded(), Files) as running:
        assert [tool.name for tool in (await running.assemble()).tools] == ["list", "delete"]


async def test_a_call_of_it_is_refused_all_the_same(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
    scripted_model.add(ScriptedAnswer(calls=[("delete", {}), ("list", {})]), "Done.")
    files = Files()
    async with agent(guarded(denied=["delete"]), files) as it:
        assert (await it.run("Delete the soup.")).ok
    results = [each for each in scripted_model.requests[1].messages if isinstance(each, ToolResultMessage)]
    assert [each.text for each in results] == ["delete is denied by a policy. Go on without it.", "soup.txt"]
    assert files.deleted == 0


async def test_everything_is_written_down_when_the_harness_is_left(
    agent: AgentFactory, scripted_model: ScriptedModel, tmp_path: Path
) -> None:
    scripted_model.add(ScriptedAnswer(calls=[("delete", {}), ("list", {})]), "Done.")
    file = tmp_path / "audit.jsonl"
    async with agent(guarded(denied=["delete"], audit_file=str(file)), Files) as it:
        session = it.id
        assert (await it.run("Delete the soup.")).ok
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["what"], each.get("tool"), each.get("error")) for each in lines] == [
        ("turn/start", None, None),
        ("call", "delete", "DENIED"),
        ("call", "list", None),
        ("turn/end", None, None),
    ]
    assert {each["session"] for each in lines} == {session}


async def test_a_file_that_cannot_be_opened_stops_the_harness_and_leaves_nothing(
    harness: HarnessFactory, tmp_path: Path
) -> None:
    with pytest.raises(PluginSetupError, match="IsADirectoryError"):
        async with harness(guarded(audit_file=str(tmp_path))):
            pass


async def test_the_guard_is_outside_of_everybody(harness: HarnessFactory) -> None:
    async with harness(guarded(), Files) as running:
        for hook in ("system_prompt_assemble", "tool_call"):
            assert running.listeners(hook)[0].plugin == "guard"
