"""All context plugins on at once, none of them a stand-in: one order of messages, and a prefix that only grows."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from harness_agent_instructions import AgentInstructions
from harness_facts import Facts
from harness_session_reference import SessionReference, mention
from harness_skills import Skills
from harness_time import TimeContext, client_source
from harness_tmux import TmuxContext
from harness_workspace import Workspace
from harness_workspace._services import LocalShell

from harness_core import Enter, Harness, PluginUse, Reject, Shell, UserMessage, hookimpl
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel
from harness_core.models.messages import canonical_message
from harness_core.session import HeaderWritten, MemoryStore, StepStart, UserMessageLogged, verify
from harness_core.tools import ShellResult

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

REPOSITORY = Path(__file__).parents[2]
PLUGINS = ("workspace", "instructions", "skills", "time", "tmux", "reference", "facts")
ORDERS = {
    "as they come": PLUGINS,
    "the other way round": PLUGINS[::-1],
    "mixed": ("tmux", "facts", "instructions", "time", "skills", "workspace", "reference"),
}
SECOND = 1_000


class InAPane(LocalShell):
    """The machine's shell, but for tmux: to that it answers that this is a pane."""

    window = "editor"

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        if "tmux" in command:
            fields = ("work", "1", self.window, "0", "%3", "1", "1", "b25d,80x24,0,0,3")
            return ShellResult(exit_code=0, stdout="\\t".join(fields) + "\n", stderr="")
        return await super().run(command, cwd=cwd, timeout=60.0)


@attrs.define
class Decides:
    """The innermost listener, through which a test decides about steps."""

    decide: Callable[[Any], Any] | None = None

    @hookimpl(trylast=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(decision)


@attrs.define
class Together:
    harness: Harness
    agent: Agent
    model: ScriptedModel
    shell: InAPane
    inner: Decides

    @property
    def entered(self) -> list[list[str]]:
        """For each step that began, what entered: the text of users, else who is behind it."""
        steps: list[list[str]] = []
        for event in self.agent.session.events:
            if isinstance(event.data, StepStart):
                steps.append([])
            elif isinstance(event.data, UserMessageLogged):
                source, text = event.data.message.source, event.data.message.text
                steps[-1].append(text if source.kind == "user" else source.plugin or source.kind)
        return steps


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git repository with this repository's sources in it, instructions and a skill."""
    root = tmp_path / "repository"
    shutil.copytree(REPOSITORY / "harness_core", root / "harness_core", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "AGENTS.md").write_text("Imports point downwards.\n")
    (root / "harness_core" / "agent" / "AGENTS.md").write_text("A turn is a state machine.\n")
    skill = root / ".agents" / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to release.\n---\nTag it.\n")
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "m"],
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


Open = Callable[..., AbstractAsyncContextManager[Together]]


@pytest.fixture
def together(checkout: Path) -> Open:
    """``async with together(order) as it``: an agent in the checkout, and a session ``earlier`` to refer to."""
    ticks = count(1_784_077_261_000, SECOND)

    @asynccontextmanager
    async def opened(
        order: tuple[str, ...] = PLUGINS, *answers: Any, store: MemoryStore | None = None, resume: bool = False
    ) -> AsyncIterator[Together]:
        instructions = AgentInstructions(environ={}, user_home="/nowhere")
        uses = {
            "workspace": PluginUse(plugin=Workspace, config={"write": True}),
            "instructions": PluginUse(plugin=instructions, config={"max_bytes": 20_000}),
            "skills": PluginUse(plugin=Skills(user_home="/nowhere")),
            "time": PluginUse(plugin=TimeContext(local_zone=lambda: "UTC")),
            "tmux": PluginUse(plugin=TmuxContext),
            "reference": PluginUse(plugin=SessionReference, config={"mentions": True}),
            "facts": PluginUse(plugin=Facts, config={"file_access": "workspace-write", "git_seconds": 60.0}),
        }
        settings = AgentSettings(
            store=store if store is not None else MemoryStore(),
            config=CallConfig(provider="script", model="m"),
            clock=lambda: next(ticks),
            debug=True,
        )
        async with Harness(plugins=[uses[each] for each in order], autoload=False, agents=settings) as harness:
            model, shell, inner = ScriptedModel(otherwise="fine"), InAPane(), Decides()
            harness.root.models.register("script", model)
            if not resume:
                earlier = await harness.create_agent("earlier", cwd=checkout)
                await earlier.run("What is planned?")
                model.requests.clear()
            harness.root.services.provide(Shell, shell)
            await harness.install(inner, name="inner")
            model.add(*answers)
            agent = await (harness.resume_agent("a") if resume else harness.create_agent("a", cwd=checkout))
            yield Together(harness, agent, model, shell, inner)

    return opened


@pytest.mark.spec("PRE-04", "PRE-05")
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_messages_have_one_order_whatever_the_order_of_loading(together: Open, order: tuple[str, ...]) -> None:
    async with together(order) as it:
        it.agent.inject(f"one {mention('earlier', 'plan')} /release")
        await it.agent.run("two")
        assert it.entered == [
            [
                "tmux-context", "one @plan /release", "session-reference", "two", "agent-instructions", "harness",
                "skills", "skills", "time-context",
            ]
        ]  # fmt: skip


@pytest.mark.spec("X-03", "PRE-02")
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_context_alone_begins_no_step(together: Open, order: tuple[str, ...]) -> None:
    async with together(order) as it:
        it.inner.decide = lambda decision: Enter(())
        result = await it.agent.run("one")
        assert (result.reason, it.entered, it.model.requests) == ("completed", [], [])


@pytest.mark.spec("PRE-07")
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_what_waited_comes_before_the_prompt_that_takes_it_along(together: Open, order: tuple[str, ...]) -> None:
    async with together(order) as it:
        it.inner.decide = lambda decision: Reject("not now")
        assert (await it.agent.run("one")).reason == "blocked"
        assert [message.source.kind for message in it.agent.inbox.next_step] == ["agent-instructions"]
        it.inner.decide = None
        await it.agent.run("two")
        assert it.entered == [["tmux-context", "agent-instructions", "two", "harness", "skills", "time-context"]]


def call(tool: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer(calls=[(tool, arguments)])


STEPS = [
    (
        call("read", file_path="AGENTS.md"),
        ["tmux-context", "Look at @plan, then /release.", "session-reference", "agent-instructions", "harness",
         "skills", "skills", "time-context"],
    ),
    (call("list", path="harness_core"), ["time-context"]),
    (call("read", file_path="harness_core/agent/turn.py"), ["time-context"]),
    # The directory's own instructions are found; the edit makes the checkout dirty.
    (call("edit", file_path="harness_core/agent/AGENTS.md", old="A turn", new="Each turn"),
     ["agent-instructions", "time-context"]),
    (call("search", pattern="class Turn", path="harness_core"), ["agent-instructions", "harness", "time-context"]),
    (call("write", file_path="notes.txt", content="x"), ["time-context"]),
    (call("skill", name="release"), ["time-context"]),
    (call("read", file_path="harness_core/agent/step.py"), ["time-context"]),
    (call("list", path="."), ["time-context"]),
    ("Done.", ["time-context"]),
]  # fmt: skip
"""What the model asks for in each step, and what enters with it."""


@pytest.mark.spec("PRE-08", "PRE-09", "TIME-26", "UC-27")
async def test_ten_steps_over_a_checkout_change_no_byte_of_what_was_sent(together: Open, checkout: Path) -> None:
    async with together(PLUGINS, *[answer for answer, _ in STEPS]) as it:
        prompt = UserMessage(
            id="p",
            content=f"Look at {mention('earlier', 'plan')}, then /release.",
            source=client_source("r1", "Europe/Berlin"),
        )
        with anyio.fail_after(300):
            result = await it.agent.run(prompt)
        assert (result.reason, len(it.model.requests)) == ("completed", len(STEPS))
        assert it.entered == [entered for _, entered in STEPS]

        sent = [[canonical_message(message) for message in request.messages] for request in it.model.requests]
        for earlier, later in zip(sent, sent[1:], strict=False):
            assert later[: len(earlier)] == earlier
        assert len({request.header for request in it.model.requests}) == 1
        assert verify(it.agent.session.info, it.agent.session.events).ok

        snapshots = [message for message in users(it) if message.source.plugin == "harness"]
        assert [list(message.source.data.get("changed", ())) for message in snapshots] == [[], ["git:state"]]
        check_provenance(it, checkout)


PARTS = {
    "agent-instructions": "changes",
    "skill-catalog": "entries",
    "skill-invocation": "skill",
    "session-reference": "references",
}
"""For each kind of message that is not simply a plugin's: what names its parts."""


def users(it: Together) -> list[UserMessage]:
    return [message for message in it.agent.session.messages if isinstance(message, UserMessage)]


def check_provenance(it: Together, checkout: Path) -> None:
    """Every message and every part of the header says whose it is."""
    for message in users(it):
        source = message.source
        if source.kind == "user":
            continue
        if source.kind == "plugin":
            assert source.plugin in {"harness", "time-context", "tmux-context"}
            sections = source.data["sections"]
            assert all(part["name"] and part["text"] in message.text for part in sections)
            assert source.plugin != "harness" or {part["plugin"] for part in sections} == {"facts"}
        else:
            assert source.data[PARTS[source.kind]]
        assert source.form in {"instructions", "catalog", "snapshot", "recall"}
        assert "harness" in message.text, "each says that it is not the user's"
        assert source.plugin == "harness" or source.kind == "session-reference" or str(checkout) not in message.text
    (header,) = [event.data for event in it.agent.session.events if isinstance(event.data, HeaderWritten)]
    tools = {tool["name"]: tool["plugin"] for tool in header.provenance["tools"]}
    assert tools == {name: "skills" if name == "skill" else "workspace" for name in tools}
    assert len(tools) == len(header.header.tools) >= 6
    spans = [section["span"] for section in header.provenance["sections"]]
    assert spans[0][0] == 0
    assert spans[-1][1] == len(header.header.system)


async def test_a_restart_repeats_nothing(together: Open) -> None:
    store = MemoryStore()
    async with together(PLUGINS, store=store) as it:
        await it.agent.run("one")
        header = it.model.requests[-1].header
    async with together(ORDERS["mixed"], store=store, resume=True) as it:
        await it.agent.run("two")
        assert it.entered[1:] == [["two", "time-context"]]
        assert it.model.requests[-1].header == header
        it.shell.window = "other"
        await it.agent.run("three")
        assert it.entered[2:] == [["tmux-context", "three", "time-context"]]
