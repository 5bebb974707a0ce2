"""Waterfalls: three ways to write a listener, one chain, one order (D2, D3)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from harness_core import Enter, Harness, PreStep, PromptAssembly, Reject, Section, UserMessage, WaterfallError, hookimpl

pytestmark = pytest.mark.anyio


@pytest.fixture
def harness() -> Harness:
    return Harness(autoload=False)


async def install(harness: Harness, function: Any, hook: str = "system_prompt_assemble", **options: Any) -> Any:
    class Plugin:
        name = function.__name__

    setattr(Plugin, hook, staticmethod(hookimpl(**options)(function)))
    return await harness.install(Plugin())


async def decide(harness: Harness, *texts: str) -> Any:
    messages = [UserMessage(id=text, content=text) for text in texts]
    step = PreStep(messages=messages, claimed=messages, scope=harness.root)
    return await harness.hooks.agent_pre_step.dispatch(harness.root, step, None, lambda given: Enter(given.messages))


def added(assembly: PromptAssembly) -> list[str]:
    return [s.name for s in assembly.sections if s.text and ":" not in s.name]


def tracing(log: list[str], name: str) -> Callable[..., Any]:
    async def listener(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
        log.append(f"{name} in")
        result: PromptAssembly = await call_next()
        log.append(f"{name} out")
        return result

    listener.__name__ = name
    return listener


@pytest.mark.spec("D2", "ASM-18", "ASM-24")
async def test_the_order_is_pluggys(harness: Harness) -> None:
    log: list[str] = []

    def wrapper(name: str) -> Any:
        def listener(assembly: PromptAssembly) -> Iterator[None]:
            log.append(f"{name} in")
            result = yield
            log.append(f"{name} out")
            return result

        listener.__name__ = name
        return listener

    def plain(assembly: PromptAssembly) -> None:
        log.append("plain")

    async with harness:
        await install(harness, tracing(log, "normal1"))
        await install(harness, wrapper("wrap"), wrapper=True)
        await install(harness, tracing(log, "first"), tryfirst=True)
        await install(harness, tracing(log, "last"), trylast=True)
        await install(harness, wrapper("wrapfirst"), wrapper=True, tryfirst=True)
        await install(harness, plain)
        await install(harness, tracing(log, "normal2"))
        await harness.assemble()
        order = ["wrapfirst", "wrap", "first", "normal2", "plain", "normal1", "last"]
        assert [each.plugin for each in harness.listeners("system_prompt_assemble")] == order
        nested = [name for name in order if name != "plain"]
        inwards = [name if name == "plain" else f"{name} in" for name in order]
        assert log == [*inwards, *(f"{name} out" for name in reversed(nested))]


@pytest.mark.spec("D3", "ASM-23")
async def test_listeners_may_be_sync_async_and_take_any_arguments(harness: Harness) -> None:
    def sync_returns_awaitable(assembly: Any, call_next: Any) -> Any:
        assembly.sections.append(Section("sync", "x"))
        return call_next()

    async def reordered_arguments(call_next: Any, context: Any, assembly: Any) -> Any:
        assert context.scope is harness.root
        assembly.sections.append(Section("reordered", "x"))
        return await call_next()

    async def only_next(call_next: Any) -> Any:
        result = await call_next()
        result.sections.append(Section("only-next", "x"))
        return result

    async def async_plain(assembly: Any) -> None:
        await anyio.lowlevel.checkpoint()
        assembly.sections.append(Section("async-plain", "x"))

    def only_context(context: Any) -> None:
        assert context.scope is harness.root

    def nothing() -> None: ...

    async with harness:
        for function in (sync_returns_awaitable, reordered_arguments, only_next, async_plain, only_context, nothing):
            await install(harness, function)
        assert added(await harness.assemble()) == ["async-plain", "reordered", "sync", "only-next"]


@pytest.mark.spec("D3", "ASM-19")
async def test_call_next_hands_on_what_was_given_or_a_replacement(harness: Harness) -> None:
    seen: list[list[str]] = []

    async def replaces(assembly: PromptAssembly, call_next: Any) -> Any:
        return await call_next(PromptAssembly([Section("replacement", "x")]))

    async def hands_on(assembly: PromptAssembly, call_next: Any) -> Any:
        seen.append(added(assembly))
        return await call_next()

    def plain_replaces(assembly: PromptAssembly) -> PromptAssembly:
        seen.append(added(assembly))
        return PromptAssembly([Section("plain", "x")])

    async with harness:
        await install(harness, hands_on, trylast=True)
        await install(harness, plain_replaces)
        await install(harness, replaces)
        assert added(await harness.assemble()) == ["plain"]
    assert seen == [["replacement"], ["plain"]]


@pytest.mark.spec("D3", "ASM-20", "PRE-02")
async def test_a_plain_decision_ends_the_chain_and_none_goes_on(harness: Harness) -> None:
    log: list[str] = []

    def goes_on(step: PreStep) -> None:
        log.append("goes on")

    def rejects(step: PreStep) -> Reject:
        log.append("rejects")
        return Reject("not now")

    def never(step: PreStep) -> None:
        log.append("never")

    async def sees(step: PreStep, call_next: Any) -> Any:
        decision = await call_next()
        log.append(decision.reason)
        return decision

    async with harness:
        await install(harness, never, "agent_pre_step")
        await install(harness, rejects, "agent_pre_step")
        await install(harness, goes_on, "agent_pre_step")
        await install(harness, sees, "agent_pre_step")
        assert await decide(harness, "a") == Reject("not now")
    assert log == ["goes on", "rejects", "not now"]


@pytest.mark.spec("PRE-01", "D3")
async def test_a_pre_step_may_be_replaced_on_the_way_in_and_rewritten_on_the_way_out(harness: Harness) -> None:
    async def both(step: PreStep, call_next: Any) -> Enter:
        note = UserMessage(id="n", content="note")
        decision = await call_next(step.with_messages(*step.messages, note))
        return Enter(reversed(decision.messages))

    async with harness:
        await install(harness, both, "agent_pre_step")
        decision = await decide(harness, "a", "b")
    assert [message.id for message in decision.messages] == ["n", "b", "a"]


@pytest.mark.spec("D3", "ASM-22", "X-20")
async def test_a_second_call_is_refused_and_names_the_listener(harness: Harness) -> None:
    async def twice(assembly: PromptAssembly, call_next: Any) -> Any:
        await call_next()
        return await call_next()

    log: list[str] = []
    async with harness:
        await install(harness, tracing(log, "inner"))
        await install(harness, twice)
        await install(harness, tracing(log, "outer"))
        with pytest.raises(WaterfallError, match="a second time") as caught:
            await harness.assemble()
    assert (caught.value.plugin, caught.value.file) == ("twice", __file__)
    assert log == ["outer in", "inner in", "inner out"]


@pytest.mark.spec("D3", "X-20")
async def test_a_call_after_the_dispatch_is_refused(harness: Harness) -> None:
    kept: list[Any] = []

    async def keeps(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
        kept.append(call_next)
        return assembly

    async with harness:
        await install(harness, keeps)
        await harness.assemble()
        with pytest.raises(WaterfallError, match="after the dispatch had ended"):
            await kept[0]()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_a_call_that_nobody_awaits_is_refused(harness: Harness) -> None:
    async def forgets(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
        call_next()
        return assembly

    async with harness:
        await install(harness, forgets)
        with pytest.raises(WaterfallError, match="without awaiting"):
            await harness.assemble()


@pytest.mark.spec("D3")
@pytest.mark.parametrize("replacement", [None, "text", Reject("x")])
async def test_a_replacement_of_the_wrong_kind_is_refused(harness: Harness, replacement: Any) -> None:
    async def hands(assembly: PromptAssembly, call_next: Any) -> Any:
        return await call_next(replacement)

    async with harness:
        await install(harness, hands)
        with pytest.raises(WaterfallError, match="handed") as caught:
            await harness.assemble()
    assert caught.value.plugin == "hands"


async def test_a_wrong_result_of_each_style_names_its_own_listener(harness: Harness) -> None:
    async def around(step: PreStep, call_next: Any) -> Any:
        await call_next()
        return [step]

    def plain(step: PreStep) -> Any:
        return "enter"

    def wrapper(step: PreStep) -> Any:
        yield

    for function, options in ((around, {}), (plain, {}), (wrapper, {"wrapper": True})):
        async with Harness(autoload=False) as each:
            await install(each, function, "agent_pre_step", **options)
            with pytest.raises(WaterfallError, match="Enter or Reject") as caught:
                await decide(each, "a")
            assert caught.value.plugin == function.__name__


async def test_wrappers_see_results_replace_them_and_recover(harness: Harness) -> None:
    def recovers(step: PreStep) -> Iterator[None]:
        try:
            result = yield
        except ValueError:
            return Reject("recovered")  # type: ignore[return-value]
        return result

    def fails(step: PreStep) -> None:
        raise ValueError("inner")

    async with harness:
        await install(harness, fails, "agent_pre_step")
        await install(harness, recovers, "agent_pre_step", wrapper=True)
        assert await decide(harness, "a") == Reject("recovered")


async def test_wrappers_that_break_their_contract_are_named() -> None:
    def never_yields(step: PreStep) -> Any:
        if step is None:
            yield
        return Enter(())

    def yields_twice(step: PreStep) -> Any:
        yield
        yield

    for function, says in ((never_yields, "did not yield"), (yields_twice, "a second time")):
        async with Harness(autoload=False) as harness:
            await install(harness, function, "agent_pre_step", wrapper=True)
            with pytest.raises(WaterfallError, match=says) as caught:
                await decide(harness, "a")
            assert caught.value.plugin == function.__name__


@pytest.mark.spec("UC-26", "ASM-23")
async def test_an_exception_keeps_its_type_and_names_the_innermost_plugin(harness: Harness) -> None:
    async def raises(assembly: PromptAssembly, call_next: Any) -> Any:
        raise LookupError("missing")

    log: list[str] = []
    async with harness:
        await install(harness, raises)
        await install(harness, tracing(log, "outer"))
        with pytest.raises(LookupError) as caught:
            await harness.assemble()
    [note] = caught.value.__notes__
    assert "system_prompt_assemble by plugin 'raises'" in note
    assert f"{__file__}:{raises.__code__.co_firstlineno}" in note


@pytest.mark.spec("D9", "CANCEL-01")
async def test_cancellation_passes_through_every_style(harness: Harness) -> None:
    log: list[str] = []
    waiting = anyio.Event()

    async def waits(assembly: PromptAssembly, call_next: Any) -> Any:
        waiting.set()
        await anyio.sleep_forever()

    async def around(assembly: PromptAssembly, call_next: Any) -> Any:
        try:
            return await call_next()
        finally:
            log.append("around")

    def wrapper(assembly: PromptAssembly) -> Iterator[None]:
        try:
            return (yield)
        finally:
            log.append("wrapper")

    async with harness:
        await install(harness, waits)
        await install(harness, around)
        await install(harness, wrapper, wrapper=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.assemble)
            await waiting.wait()
            tasks.cancel_scope.cancel()
    assert log == ["around", "wrapper"]


async def test_concurrent_dispatches_do_not_meet(harness: Harness) -> None:
    barrier = [anyio.Event(), anyio.Event()]
    arrived: list[int] = []
    results: dict[int, list[str]] = {}

    async def meets(assembly: PromptAssembly, call_next: Any) -> Any:
        number = len(arrived)
        arrived.append(number)
        barrier[number].set()
        await barrier[1 - number].wait()
        assembly.sections.append(Section(f"s{number}", "x"))
        return await call_next()

    async def run(number: int) -> None:
        results[number] = added(await harness.assemble())

    async with harness:
        await install(harness, meets)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, 0)
            tasks.start_soon(run, 1)
    assert sorted(results.values()) == [["s0"], ["s1"]]


async def test_more_listeners_than_the_stack_holds_are_an_early_error(harness: Harness) -> None:
    async def listener(assembly: PromptAssembly, call_next: Any) -> Any:
        return await call_next()

    async with harness:
        for _ in range(sys.getrecursionlimit() // 2):
            await install(harness, listener)
        with pytest.raises(WaterfallError, match="recursion limit"):
            await harness.assemble()


async def test_three_hundred_nested_listeners_and_any_number_of_plain_ones_run(harness: Harness) -> None:
    count = 0

    async def nested(assembly: PromptAssembly, call_next: Any) -> Any:
        return await call_next()

    def plain(assembly: PromptAssembly) -> None:
        nonlocal count
        count += 1

    async with harness:
        for _ in range(300):
            await install(harness, nested)
        for _ in range(1500):
            await install(harness, plain, trylast=True)
        await harness.assemble()
    assert count == 1500


@pytest.mark.spec("SCOPE-17", "SCOPE-12", "SCOPE-19", "INV-04")
async def test_a_scope_admits_its_own_listeners_and_those_of_its_ancestors(harness: Harness) -> None:
    def marks(name: str) -> Any:
        class Plugin:
            @hookimpl
            def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
                assembly.sections.append(Section(name, "x"))

        return Plugin()

    async with harness:
        top = harness.root.child("top")
        leaf, side = top.child("leaf"), harness.root.child("side")
        for name, scope in (("root", None), ("leaf", leaf), ("top", top), ("side", side)):
            await harness.install(marks(name), scope=scope)
        assert added(await harness.assemble()) == ["root"]
        assert added(await harness.assemble(top)) == ["top", "root"]
        assert added(await harness.assemble(leaf)) == ["top", "leaf", "root"]  # registration order, not distance
        leaf.relink(side)
        assert added(await harness.assemble(leaf)) == ["side", "leaf", "root"]


async def test_asking_for_the_listeners_of_an_unknown_hook_says_which_there_are(harness: Harness) -> None:
    with pytest.raises(Exception, match="no hook called") as caught:
        harness.listeners("agent_prestep")
    assert "agent_pre_step" in caught.value.known  # type: ignore[attr-defined]


@pytest.mark.spec("UC-25")
@pytest.mark.parametrize("first", [0, 1])
async def test_observers_come_and_go_in_any_order(harness: Harness, first: int) -> None:
    counts = {"a": 0, "b": 0}

    def observer(name: str) -> Any:
        class Observer:
            @hookimpl
            def system_prompt_change(self) -> None:
                counts[name] += 1

        return Observer()

    async with harness:
        activations = [await harness.install(observer("a")), await harness.install(observer("b"))]
        harness.root.prompt.section("one", "x", order=1)
        assert counts == {"a": 1, "b": 1}
        await activations[first].aclose()
        harness.root.prompt.section("two", "x", order=1)
        assert counts == ({"a": 1, "b": 2} if first == 0 else {"a": 2, "b": 1})
        await activations[1 - first].aclose()
        before = dict(counts)
        harness.root.prompt.section("three", "x", order=1)
        assert counts == before
