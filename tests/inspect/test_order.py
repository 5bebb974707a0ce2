"""The order of listeners: why each stands where it stands, who is filtered out, and what would be otherwise elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core import Harness, HarnessError, PluginUse, hookimpl
from harness_core.inspect import compare_orders, hook_order, hook_orders
from tests.inspect._twelve import EXPECTED, REVIEWER, twelve
from tests.inspect.conftest import Looked

pytestmark = pytest.mark.anyio


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    async def agent_pre_step(self, call_next: Any) -> Any:
        return await call_next()


def names(order: Any) -> list[str]:
    return [listener.plugin for listener in order.listeners]


def test_each_of_the_twelve_stands_with_its_reason(looked: Looked) -> None:
    order = looked.orders[0]
    assert names(order) == list(EXPECTED)
    why = {listener.plugin: listener.why for listener in order.listeners}
    assert why["polish"].startswith("wrappers run outside")
    assert "tryfirst among them" in why["polish"]
    assert why["policy"].startswith("tryfirst")
    assert why["trimmer"].startswith("trylast")
    assert "registered as number" in why["quiet"]
    told = order.to_json()["listeners"][0]
    assert told["place"] == 1
    assert told["file"].endswith("_twelve.py")
    assert isinstance(told["line"], int)


@pytest.mark.spec("UC-17")
async def test_listeners_that_a_scope_does_not_admit_are_listed_with_the_reason() -> None:
    async with twelve() as (harness, scope):
        below = hook_order(harness, "system_prompt_assemble")
        assert {each.listener.plugin for each in below.filtered} == {
            *("policy", "polish", "trimmer"),
            *(each.name for each in REVIEWER),
        }
        reasons = {each.listener.plugin: each.reason for each in below.filtered}
        assert "scope 'team', which is below 'global'" in reasons["policy"]
        other = hook_order(harness, "system_prompt_assemble", harness.scope("other"))
        reasons = {each.listener.plugin: each.reason for each in other.filtered}
        assert "scope 'reviewer', which is not among global -> other" in reasons["reader"]
        assert hook_order(harness, "system_prompt_assemble", scope).filtered == ()


async def test_what_moves_without_a_plugin() -> None:
    async with Harness(plugins=[Named("a"), Named("b"), Named("c")], autoload=False) as harness:
        order = hook_order(harness, "agent_pre_step")
        found = compare_orders(order, order.without("b"))
        assert [(row.plugin, row.left, row.right, row.moved) for row in found.rows] == [
            ("c", 1, 1, False),
            ("b", 2, None, False),
            ("a", 3, 2, False),
        ]
        assert not found.same
        assert compare_orders(order, order).same


async def test_two_compositions_side_by_side_show_what_a_constraint_moves() -> None:
    async def order(*uses: Any) -> Any:
        async with Harness(plugins=uses, autoload=False) as harness:
            return hook_order(harness, "agent_pre_step")

    plain = await order(Named("a"), Named("b"), Named("c"))
    bound = await order(PluginUse(plugin=Named("a"), after=["c"]), Named("b"), Named("c"))
    found = compare_orders(plain, bound)
    assert [row.plugin for row in found.rows if row.moved] == ["a"]
    before, after = next(row.why for row in found.rows if row.plugin == "a")
    assert "after c" not in before
    assert "after c" in after


@pytest.mark.spec("UC-10")
async def test_a_policy_of_the_outermost_tier_stays_outside_of_whoever_comes_later() -> None:
    async with Harness(plugins=[PluginUse(plugin=Named("policy"), outermost=True)], autoload=False) as harness:

        class Later:
            name = "later"

            @hookimpl(wrapper=True, tryfirst=True)
            def agent_pre_step(self) -> Any:
                return (yield)

        await harness.install(Later())
        order = hook_order(harness, "agent_pre_step")
    assert names(order) == ["policy", "later"]
    assert "outermost tier of the composition" in order.listeners[0].why


async def test_all_hooks_that_anybody_listens_to_are_there_observers_too() -> None:
    class Watching:
        name = "watching"

        @hookimpl
        def session_event(self) -> None:
            pass

    async with Harness(plugins=[Watching(), Named("a")], autoload=False) as harness:
        orders = {order.hook: order for order in hook_orders(harness)}
    assert list(orders) == ["agent_pre_step", "session_event"]
    assert orders["agent_pre_step"].waterfall
    assert not orders["session_event"].waterfall


async def test_an_unknown_hook_is_refused() -> None:
    async with Harness(autoload=False) as harness:
        with pytest.raises(HarnessError, match="no hook called 'nope'"):
            hook_order(harness, "nope")
