"""Ten steps over this repository with the plugins on: the prefix only grows, and everything says where it comes from."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from harness_agent_instructions import AgentInstructions
from harness_skills import Skills
from harness_workspace import Workspace

from harness_core import Harness, PluginUse, UserMessage
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel
from harness_core.models.messages import canonical_message
from harness_core.session import StepStart, UserMessageLogged, verify

pytestmark = pytest.mark.anyio

REPOSITORY = Path(__file__).parents[2]
OWNED = {
    "agent-instructions": ("changes", "instructions"),
    "skill-catalog": ("entries", "catalog"),
    "skill-invocation": ("skill", "instructions"),
}
"""For each plugin's kind of message: what names its parts, and its form."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    shutil.copytree(REPOSITORY / "harness_core", root / "harness_core", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "README.md", root)
    (root / ".git").mkdir()
    (root / "AGENTS.md").write_text("Imports point downwards.\n")
    (root / "harness_core" / "agent" / "AGENTS.md").write_text("A turn is a state machine.\n")
    skill = root / ".agents" / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to release.\n---\nTag it.\n")
    return root


def call(tool: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer(calls=[(tool, arguments)])


SKILL = "---\nname: review\ndescription: How to review.\n---\nRead it twice.\n"
STEPS = [
    (call("read", file_path="README.md"), ["agent-instructions", "plugin", "skill-catalog", "skill-invocation"]),
    (call("list", path="harness_core"), []),
    (call("read", file_path="harness_core/agent/turn.py"), []),
    (call("edit", file_path="harness_core/agent/AGENTS.md", old="A turn", new="Each turn"), ["agent-instructions"]),
    (call("search", pattern="class Turn", path="harness_core"), ["agent-instructions"]),
    (call("write", file_path=".agents/skills/review/SKILL.md", content=SKILL), []),
    (call("skill", name="review"), ["skill-catalog"]),
    (call("read", file_path="harness_core/agent/step.py"), []),
    (call("list", path="."), []),
    ("Done.", []),
]
"""What the model asks for in each step, and what plugins let enter with it."""


@pytest.mark.spec("PRE-09", "UC-27")
async def test_ten_steps_change_no_byte_of_what_was_sent(checkout: Path) -> None:
    model = ScriptedModel(*[answer for answer, _ in STEPS])
    plugins = [
        PluginUse(plugin=Workspace, config={"write": True}),
        PluginUse(plugin=AgentInstructions(environ={}, user_home="/nowhere"), config={"max_bytes": 20_000}),
        PluginUse(plugin=Skills(user_home="/nowhere")),
    ]
    settings = AgentSettings(config=CallConfig(provider="script", model="m"), debug=True)
    async with Harness(plugins=plugins, autoload=False, agents=settings) as harness:
        harness.root.models.register("script", model)
        harness.root.prompt.context("facts", "It rains.", order=0)
        agent = await harness.create_agent("a", cwd=checkout)
        with anyio.fail_after(120):
            result = await agent.run("Look around, then /release.")
        assert (result.reason, len(model.requests)) == ("completed", 10)
        sent = [[canonical_message(message) for message in request.messages] for request in model.requests]
        for earlier, later in zip(sent, sent[1:], strict=False):
            assert later[: len(earlier)] == earlier
        assert len({request.header for request in model.requests}) == 1
        assert _entered(agent.session.events) == [["user", *STEPS[0][1]], *(kinds for _, kinds in STEPS[1:])]
        first = next(message for message in agent.session.messages if isinstance(message, UserMessage))
        assert first.source.kind == "user"
        for message in agent.session.messages:
            if isinstance(message, UserMessage) and message.source.kind in OWNED:
                parts, form = OWNED[message.source.kind]
                assert message.source.form == form
                assert message.source.data[parts]
                assert "harness put" in message.text
                assert str(checkout) not in message.text
        assert verify(agent.session.info, agent.session.events).ok


def _entered(events: Any) -> list[list[str]]:
    steps: list[list[str]] = []
    for event in events:
        if isinstance(event.data, StepStart):
            steps.append([])
        elif isinstance(event.data, UserMessageLogged):
            steps[-1].append(event.data.message.source.kind)
    return steps
