"""Run by the tests inside a pane: an agent's turns, and what its model was told of the pane. Arguments: how, and a file.

``pane`` runs the turns here, ``socket`` without the variable that names the server, ``terminal`` in a terminal of its own
that was started from here, and ``none`` without one.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import traceback
from pathlib import Path

import anyio
from harness_tmux import TmuxContext
from harness_workspace import Workspace

from harness_core import Harness, UserMessage
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedModel


async def turns() -> list[str]:
    agents = AgentSettings(config=CallConfig(provider="script", model="m"))
    async with Harness(autoload=False, agents=agents) as harness:
        harness.root.models.register("script", ScriptedModel(otherwise="fine"))
        await harness.install(Workspace, config={"shell": True})
        await harness.install(TmuxContext(seconds=30.0))
        agent = await harness.create_agent("a")
        await agent.run("one")
        await agent.run("two")
        subprocess.run(["tmux", "rename-window", "a\\tb"], check=False)
        await agent.run("three")
        subprocess.run(["tmux", "rename-window", "a\\nb #{pane_id}"], check=False)
        await agent.run("four")
        subprocess.run(["tmux", "split-window", "-d", "sleep 1000"], check=False)
        await agent.run("five")
        return [
            message.text
            for message in agent.session.messages
            if isinstance(message, UserMessage) and message.source.plugin == "tmux-context"
        ]


def main(how: str, result: str) -> None:
    if how == "terminal":
        pty.spawn([sys.executable, __file__, "pane", result])
        return
    if how == "none":
        os.setsid()
    if how == "socket":
        del os.environ["TMUX"]
    try:
        told: object = anyio.run(turns)
    except BaseException:
        told = traceback.format_exc()
    Path(result).write_text(json.dumps({"told": told, "pane": os.environ.get("TMUX_PANE")}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
