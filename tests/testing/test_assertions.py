"""Each assertion of the kit: a plugin that keeps it, one that does not, and a message that says what is different."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest

from harness_core import Literal, PluginContext, PluginUse, ToolSchema, hookimpl
from harness_core.errors import HarnessError, PluginLoadError
from harness_core.host.findings import Finding
from harness_core.testing import (
    CHECKS,
    assert_cache_stable,
    assert_deterministic,
    assert_scoped,
    assert_undoes_itself,
    contract_findings,
    plugin_contract,
)
from harness_core.testing.assertions import raise_on
from harness_core.testing.contract import subject_of

pytestmark = pytest.mark.anyio


class Weather:
    """Keeps the contract, with something in each lane."""

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
        ctx.prompt.section("weather:how", "Ask for the forecast before you plan a trip to {{city}}.", order=120)
        ctx.prompt.context("weather:now", lambda context: f"{ctx.harness.agents.settings.clock()}: sunny", order=50)
        ctx.prompt.variable("city", lambda context: "Paris")
        ctx.tools.register(ToolSchema("forecast", "The forecast for a city."), lambda call: "sunny, 23 degrees")
        yield

    @hookimpl(tryfirst=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await call_next()


async def message_of(assertion: Any, plugin: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        await assertion(plugin, **options)
    return str(caught.value)


@pytest.mark.parametrize("assertion", [assert_undoes_itself, assert_deterministic, assert_scoped, assert_cache_stable])
async def test_a_good_plugin_passes(assertion: Any) -> None:
    await assertion(Weather)


def test_a_sync_test_runs_an_assertion_in_a_loop_of_its_own() -> None:
    anyio.run(assert_undoes_itself, Weather)


test_the_contract_of_a_good_plugin = plugin_contract(Weather)
test_the_contract_of_an_installed_plugin = plugin_contract("workspace", skip=["importing", "hash-seeds", "together"])


def test_the_contract_has_a_test_for_each_check_and_those_of_a_distribution_for_a_name() -> None:
    def checks(test: Any) -> list[str]:
        [mark] = test.pytestmark
        return list(mark.args[1])

    assert checks(test_the_contract_of_a_good_plugin) == list(CHECKS)
    assert {"orders", "metadata", *CHECKS} == {*checks(test_the_contract_of_an_installed_plugin)}
    with pytest.raises(AssertionError, match=r"^does-not-undo-itself: plugin 'leaves'"):
        plugin_contract(Leaves)("undoes-itself")
    with pytest.raises(HarnessError, match="There is no check called 'orders'"):
        plugin_contract(Weather, skip=["orders"])


# --- undoing ----------------------------------------------------------------------------------------------------------


class Leaves:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.harness.root.prompt.section("leaves:how", Literal("one line\nanother line"), order=7)


async def test_what_is_left_is_shown_with_its_text() -> None:
    assert await message_of(assert_undoes_itself, Leaves) == (
        "does-not-undo-itself: plugin 'leaves' was installed and taken out again, and it is not as before.\n"
        "  sections: 'leaves:how' is still there\n"
        "      + one line\n"
        "      + another line\n"
        "  registered, and not undone: section 'leaves:how'\n"
        "  Register through ctx, and undo everything else after the yield, or with ctx.effects."
    )


class ChangesTheProcess:
    event = threading.Event()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        os.environ["CHANGES_THE_PROCESS"] = "secret-value"
        self.start()

    @classmethod
    def start(cls) -> threading.Thread:
        made = threading.Thread(target=cls.event.wait, name="left-behind", daemon=True)
        made.start()
        return made


async def test_threads_and_variables_of_the_process_are_named_without_their_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CHANGES_THE_PROCESS", raising=False)
    ChangesTheProcess.event.clear()
    there_before = ChangesTheProcess.start()  # one of the same name is not the one that the plugin leaves
    try:
        message = await message_of(assert_undoes_itself, ChangesTheProcess)
    finally:
        ChangesTheProcess.event.set()
        there_before.join()
        del os.environ["CHANGES_THE_PROCESS"]
    assert "  in the process: threads: new: left-behind\n" in message
    assert "  in the process: environment variables: CHANGES_THE_PROCESS\n" in message
    assert "secret-value" not in message


async def test_the_threads_of_the_event_loop_are_nobody_s() -> None:
    class Waits:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> None:
            await anyio.to_thread.run_sync(threading.get_ident)

    await assert_undoes_itself(Waits)


class FailsOnTheWayOut:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
        yield
        raise RuntimeError("the pump is stuck")


async def test_a_clean_up_that_raises_is_told_with_its_cause() -> None:
    message = await message_of(assert_undoes_itself, FailsOnTheWayOut)
    assert "plugin 'fails-on-the-way-out' could not be taken out without an error.\n" in message
    assert "RuntimeError: the pump is stuck (raised while plugin 'fails-on-the-way-out'" in message


class DoesNotStart:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        raise RuntimeError("no gas")


async def test_a_plugin_that_does_not_come_up_is_what_every_assertion_says() -> None:
    for assertion in (assert_undoes_itself, assert_deterministic, assert_scoped, assert_cache_stable):
        message = await message_of(assertion, DoesNotStart)
        assert message.startswith("plugin-failed: The set-up of plugin 'does-not-start' failed: RuntimeError: no gas.")


async def test_an_unknown_name_is_an_error_of_the_test() -> None:
    with pytest.raises(PluginLoadError, match="nobody"):
        await assert_undoes_itself("nobody")


# --- the other ones ---------------------------------------------------------------------------------------------------


def counting() -> Any:
    """A plugin class with a section whose text is another one at each call."""

    class Counting:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            numbers = itertools.count(1)
            ctx.prompt.section("counting:calls", lambda context: f"Call {next(numbers)}", order=7)

    return Counting


async def test_a_text_that_changes_by_itself_is_shown_before_and_after() -> None:
    assert await message_of(assert_deterministic, counting()) == (
        "not-deterministic: plugin 'counting', assembled twice in one harness with nothing changed, tells two different "
        "things.\n"
        "  sections: 'counting:calls' of plugin 'counting' changed\n"
        "      - Call 1\n"
        "      + Call 3\n"
        "  Ask the harness's clock for the time, sort what comes from sets and folders, and draw no lots."
    )


def numbered() -> Any:
    """A plugin class whose instances know how many came before them."""

    class Numbered:
        made = itertools.count(1)

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            number = next(self.made)
            ctx.tools.register(ToolSchema("count", f"I am number {number}."), lambda call: "")

    return Numbered


async def test_another_activation_that_tells_something_else_is_not_deterministic() -> None:
    message = await message_of(assert_deterministic, numbered())
    assert "installed in two harnesses at the same time of day" in message
    assert "tools: 'count' of plugin 'numbered' changed" in message
    assert "I am number 2." in message


async def test_what_shows_in_a_scope_of_somebody_else_is_named() -> None:
    class Meddles:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.harness.scope("beside").tools.register(ToolSchema("meddle", "Meddle."), lambda call: "")

    message = await message_of(assert_scoped, Meddles)
    assert "tools: 'meddle' of plugin None" not in message
    assert "tools: 'meddle' is seen here too" in message


def test_a_note_fails_nothing() -> None:
    note = Finding(code="slow-import", message="Slow.", remedy="Hurry.")
    raise_on([note])
    with pytest.raises(AssertionError) as caught:
        raise_on([note, Finding(code="import-effect", message="Prints.", remedy="Be quiet.", details="one\ntwo")])
    assert str(caught.value) == "import-effect: Prints.\n  one\n  two\n  Be quiet."


class Remembers:
    """What one activation leaves, in each way that modules and classes offer."""

    names: list[str] = []

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        self.names.append(ctx.scope.name)


async def test_variables_that_grow_with_each_activation_are_named() -> None:
    [finding] = await contract_findings(subject_of(Remembers), ["no-shared-state"])
    assert finding.code == "shared-state"
    assert (finding.details or "").endswith("test_assertions.Remembers.names")


async def test_two_activations_at_once_must_not_disturb_each_other() -> None:
    class Shares:
        active: set[str] = set()

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
            self.active.add(ctx.scope.name)
            ctx.prompt.section("shares:here", lambda context: f"{len(self.active)} active", order=7)
            yield
            self.active.discard(ctx.scope.name)

    [finding] = await contract_findings(subject_of(Shares), ["no-shared-state"])
    assert "active in two scopes at once, tells something else than alone" in finding.message
    assert finding.details == "sections: 'shares:here' of plugin 'shares' changed\n    - 1 active\n    + 2 active"


async def test_an_activation_that_keeps_the_next_from_coming_up_is_shared_state() -> None:
    [finding] = await contract_findings(subject_of(Leaves), ["no-shared-state"])
    assert finding.code == "shared-state"
    assert "installed a second time, does not come up" in finding.message
    assert "'leaves:how' is already registered" in (finding.details or "")


async def test_long_texts_are_cut_and_counted() -> None:
    class Long:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.harness.root.prompt.section("long:text", "\n".join(["x" * 500] * 30), order=7)

    lines = (await message_of(assert_undoes_itself, Long)).splitlines()
    assert lines[2] == f"      + {'x' * 158}..."
    assert lines[14] == "      ... and 18 more lines"


async def test_what_shows_outside_of_the_scope_is_named() -> None:
    assert await message_of(assert_scoped, Leaves) == (
        "not-scoped: plugin 'leaves' was installed in one scope alone, and shows outside of it.\n"
        "  sections: 'leaves:how' is seen here too\n"
        "      + one line\n"
        "      + another line\n"
        "  Register through ctx (ctx.prompt, ctx.tools, ...), which stays in the plugin's scope."
    )


class OnlyGlobal:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        if ctx.scope.is_root:
            ctx.prompt.context("only-global:now", "Here.", order=7)


async def test_what_is_missing_in_its_own_scope_is_named() -> None:
    message = await message_of(assert_scoped, OnlyGlobal)
    assert "contexts: 'only-global:now' of plugin 'only-global' missing\n      - Here." in message


async def test_the_section_that_breaks_the_cache_is_named_with_plugin_and_request() -> None:
    message = await message_of(assert_cache_stable, counting(), steps=4)
    assert message.startswith(
        "breaks-cache: With plugin 'counting', 3 of 4 requests do not begin with the request before them.\n"
        "  request 2 (turn 1, step 2): section 'counting:calls' changed by counting\n"
        "      - Call 1\n"
        "      + Call 2\n"
    )


class Reads:
    """A section that shows what is in a folder of the world around it."""

    world: list[str] = ["sunny"]

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("reads:world", lambda context: self.world[0], order=7)


async def test_the_world_changes_between_steps_where_the_test_says_so() -> None:
    await assert_cache_stable(Reads)
    seen: list[int] = []

    def rain(step: int) -> None:
        seen.append(step)
        Reads.world[0] = "rain" if step == 3 else "sunny"

    message = await message_of(assert_cache_stable, Reads, between=rain)
    assert seen == [3, 5]
    assert "request 3 (turn 2, step 1): section 'reads:world' changed by reads\n      - sunny\n      + rain" in message


class Stumbles:
    @hookimpl
    def agent_pre_step(self, step: Any) -> None:
        raise RuntimeError("a stone")


async def test_a_turn_that_fails_is_a_finding_of_its_own() -> None:
    message = await message_of(assert_cache_stable, Stumbles)
    assert message.startswith("turn-failed: plugin 'stumbles': turn 1 of an agent ended with 'error': ")
    assert "a stone" in message


async def test_settings_and_neighbours_come_with_the_plugin() -> None:
    class Needs:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            if ctx.harness.tools.find(ctx.scope, "forecast") is None:
                raise LookupError("no forecast")

    await assert_undoes_itself(Needs, beside=[Weather])
    await assert_scoped(PluginUse(plugin=Needs, name="needs"), beside=[Weather])
    assert "no forecast" in await message_of(assert_undoes_itself, Needs)
