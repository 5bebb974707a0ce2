"""A traced step of the twelve, made once: most tests only look at it."""

from __future__ import annotations

import anyio
import attrs
import pytest

from harness_core.inspect import (
    Explanation,
    Found,
    HookOrder,
    TracedStep,
    Writer,
    explain,
    find_text,
    hook_order,
    tool_writers,
    traced_step,
)
from tests.inspect._twelve import twelve

EXPLAINED = ("house:rules", "city", "beta", "gamma", "noise", "moon", "style", "weather", "nothing")
SOUGHT = ("Whisper", "SHOUT", "We are in Rome", "lovely things", "spam", "waxing")


@attrs.frozen(kw_only=True)
class Looked:
    """All that is known of the traced step."""

    traced: TracedStep
    orders: tuple[HookOrder, ...]
    tools: dict[str, Writer]
    explained: dict[str, list[Explanation]]
    found: dict[str, list[Found]]


async def look() -> Looked:
    async with twelve() as (harness, scope):
        traced = await traced_step(harness, scope, ["hello", "spam"])
        tools = tool_writers(harness, scope)
        return Looked(
            traced=traced,
            orders=tuple(hook_order(harness, hook, scope) for hook in ("system_prompt_assemble", "agent_pre_step")),
            tools=tools,
            explained={name: explain(harness, scope, traced.assembly, name, traced.step) for name in EXPLAINED},
            found={text: find_text(traced.assembly, text, step=traced.step, tools=tools) for text in SOUGHT},
        )


@pytest.fixture(scope="session")
def looked() -> Looked:
    return anyio.run(look)
