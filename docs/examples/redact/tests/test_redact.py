"""What is kept from the model, in which scope, and from whom: also from plugins that add messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from harness_redact import Redact
from harness_redact.plugin import NOTICE

from harness_core import Enter, PluginUse, PreStep, Reject, Source, UserMessage, hookimpl
from harness_core.errors import PluginConfigError
from harness_core.testing import AgentFactory, HarnessFactory, ScriptedModel, plugin_contract

pytestmark = pytest.mark.anyio

test_contract = plugin_contract(Redact)

PROMPT = "Charge 4111 1111 1111 1111 and write to ada@example.org."
MASKED = "Charge [card] and write to [address]."


class Recall:
    """Adds what a memory holds, as late as it can."""

    @hookimpl(tryfirst=True)
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        decision = await call_next()
        if isinstance(decision, Reject):
            return decision
        recalled = UserMessage(id=f"recall-{step.turn}", content=PROMPT, source=Source("plugin", "recall", "recall"))
        return Enter((*decision.messages, recalled))


def told(model: ScriptedModel) -> list[str]:
    return [each.text for each in model.requests[-1].messages]


async def test_words_stand_for_what_was_found_and_the_model_is_told_once(
    agent: AgentFactory, scripted_model: ScriptedModel
) -> None:
    scripted_model.add("Done.", "Done again.")
    async with agent(Redact) as it:
        for _ in range(2):
            assert (await it.run(PROMPT)).ok
    texts = told(scripted_model)
    assert texts.count(MASKED) == 2
    assert texts.count(NOTICE) == 1
    assert texts.index(NOTICE) == texts.index(MASKED) + 1


async def test_what_holds_nothing_of_it_enters_as_it_is(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
    scripted_model.add("Hello.")
    async with agent(Redact) as it:
        assert (await it.run("Good morning, 42.")).ok
    assert NOTICE not in told(scripted_model)


async def test_a_turn_can_be_refused_instead(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
    async with agent(Redact, config={"found": "reject"}) as it:
        result = await it.run(PROMPT)
    assert result.reason == "blocked"
    assert scripted_model.requests == []


async def test_only_agents_in_its_scope_are_concerned(harness: HarnessFactory, scripted_model: ScriptedModel) -> None:
    scripted_model.add("Done.", "Done.")
    async with harness(PluginUse(plugin=Redact, scope="support")) as running:
        support = await running.create_agent("support-1", provider="scripted", scope=running.scope("support"))
        assert (await support.run(PROMPT)).ok
        assert MASKED in told(scripted_model)
        billing = await running.create_agent("billing-1", provider="scripted")
        assert (await billing.run(PROMPT)).ok
        assert PROMPT in told(scripted_model)


@pytest.mark.parametrize(("constraint", "seen"), [("after", False), ("before", True)])
async def test_the_order_of_registration_decides_whose_messages_it_sees(
    harness: HarnessFactory, scripted_model: ScriptedModel, constraint: str, seen: bool
) -> None:
    scripted_model.add("Done.")
    constraints: dict[str, Any] = {constraint: ["recall"]}
    async with harness(PluginUse(plugin=Redact, **constraints), Recall) as running:
        agent = await running.create_agent("it", provider="scripted")
        assert (await agent.run("Good morning.")).ok
    assert (PROMPT in told(scripted_model)) is seen


@pytest.mark.parametrize("pattern", ["(", "x*"])
async def test_patterns_that_are_none_are_refused_by_name(harness: HarnessFactory, pattern: str) -> None:
    with pytest.raises(PluginConfigError, match="patterns"):
        async with harness(Redact, config={"patterns": {"order": pattern}}):
            pass
