"""A recorded turn of ten steps whose prefix breaks in steps 4 and 9: a section's text, then a variable."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from harness_core import Harness, ToolSchema, hookimpl
from harness_core.host import AgentSettings
from harness_core.host.discovery import PluginSource
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel, Usage
from harness_core.session import FileStore, LogContents, MemoryStore, SessionStore, read_log

STEPS = 10
SECTION_STEP, VARIABLE_STEP = 4, 9
LONG = "A sentence that makes the prompt as long as prompts are. " * 20


def source(name: str, plugin: Any, version: str = "1.2.3") -> PluginSource:
    """A plugin as if it had been installed from a distribution."""
    return PluginSource(name=name, distribution=f"dist-{name}", version=version, load=lambda: plugin)


class Clock:
    """Counts the steps."""

    def __init__(self) -> None:
        self.step = 0

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.tools.register(ToolSchema("work", "Do some work."), self.work)
        ctx.prompt.section("clock:first", LONG, order=1)

    @hookimpl
    def system_prompt_assemble(self, context: Any) -> None:
        self.step = context.step or 0

    def work(self, call: Any) -> str:
        return "worked"


class Notes:
    """Remembered notes, read into a section: they change before step 4."""

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section(
            "notes:all", lambda c: "Notes: " + ("tea" if (c.step or 0) < SECTION_STEP else "coffee"), order=50
        )


class Places:
    """A variable that changes before step 9, used by a section of the same plugin."""

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("places:here", "You are in {{city}}. " + LONG, order=60)
        ctx.prompt.variable("city", lambda c: "Paris" if (c.step or 0) < VARIABLE_STEP else "Rome")


def answers(steps: int, tokens: int | None = None) -> list[ScriptedAnswer]:
    """Calls of a tool, and an answer at the end; with ``tokens`` the service counts."""
    found = []
    for step in range(1, steps + 1):
        usage = None if tokens is None else Usage(input_tokens=tokens + 10 * step, cached_tokens=0, output_tokens=5)
        calls = [("work", {"step": step})] if step < steps else []
        found.append(ScriptedAnswer(text=f"Step {step}.", calls=calls, usage=usage))
    return found


async def recorded(
    plugins: Iterable[Any],
    script: Iterable[Any],
    *,
    prompts: Iterable[str] = ("go",),
    store: SessionStore | None = None,
    session: str = "s1",
) -> LogContents:
    """Run an agent with these plugins and read its log."""
    store = store if store is not None else MemoryStore()
    ids = count(1)
    settings = AgentSettings(
        store=store,
        config=CallConfig(provider="script", model="m1"),
        clock=count(1_700_000_000_000, 1_000).__next__,
        new_id=lambda: f"id{next(ids)}",
    )
    async with Harness(plugins=list(plugins), autoload=False, agents=settings) as harness:
        harness.root.models.register("script", ScriptedModel(*script, otherwise="fine"))
        agent = await harness.create_agent(session, cwd="/tmp")
        for prompt in prompts:
            await agent.run(prompt)
        await agent.aclose()
    return read_log(store, session)


async def broken_run(folder: Path | None = None, tokens: int | None = None) -> LogContents:
    """The recorded turn."""
    plugins = [Clock(), source("notes", Notes()), source("places", Places(), "4.5.6")]
    store = FileStore(folder) if folder is not None else None
    return await recorded(plugins, answers(STEPS, tokens), store=store)
