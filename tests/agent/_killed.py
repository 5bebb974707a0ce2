"""Run in a process of its own: an agent that works through tool turns until it is killed, telling each logged event.

``acknowledge`` (a connection) and ``folder`` come from whoever starts it.
"""

from __future__ import annotations

from typing import Any

import anyio

from harness_core.hooks import ToolCall
from harness_core.host import AgentSettings, Harness
from harness_core.models import CallConfig, ModelRequest, ScriptedAnswer, ScriptedModel, ToolSchema, UserMessage
from harness_core.session import FileStore, SessionNotFoundError


async def work(folder: str, acknowledge: Any) -> None:
    settings = AgentSettings(store=FileStore(folder), config=CallConfig(provider="script", model="m"))
    calls = ScriptedAnswer(text="on it", calls=[("safe", {"n": 1}), ("safe", {"n": 2}), ("alone", {"n": 3})])

    def answer(request: ModelRequest) -> ScriptedAnswer | str:
        return calls if isinstance(request.messages[-1], UserMessage) else "all done"

    async def handler(call: ToolCall) -> str:
        await anyio.sleep(0)
        return f"result {call.arguments['n']}"

    async with Harness(autoload=False, agents=settings) as harness:
        harness.root.models.register("script", ScriptedModel(otherwise=answer))
        harness.root.tools.register(ToolSchema("safe"), handler, parallel_safe=True)
        harness.root.tools.register(ToolSchema("alone"), handler)
        try:
            agent = await harness.resume_agent("a")
        except SessionNotFoundError:
            agent = await harness.create_agent("a")
        acknowledge.send(len(agent.session.events))
        agent.session.observe(lambda event: acknowledge.send((event.seq, event.type)))
        while True:
            await agent.run("please")


if __name__ == "__main__":
    anyio.run(work, globals()["folder"], globals()["acknowledge"])
