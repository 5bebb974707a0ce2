"""Tracing: every listener's part in a dispatch, exactly, and nothing left of it when it is over."""

from __future__ import annotations

from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from harness_core import (
    AssembleContext,
    Enter,
    Harness,
    PromptAssembly,
    Reject,
    Section,
    ToolSchema,
    WaterfallError,
    hookimpl,
    render_prompt,
)
from harness_core.hooks.waterfall import compile_chain
from harness_core.inspect import conflicts, snapshot, traced_step, tracing
from tests.inspect._twelve import EXPECTED, EXPECTED_STEP, twelve
from tests.inspect.conftest import Looked

pytestmark = pytest.mark.anyio


def changed(run: Any) -> set[tuple[str, str, str]]:
    return {(change.lane, change.kind, change.name) for change in run.changes}


# --- the twelve -------------------------------------------------------------------------------------------------------


def test_the_trace_has_all_twelve_in_the_order_of_the_listeners(looked: Looked) -> None:
    dispatch = looked.traced.assembly.dispatch
    assert dispatch is not None
    names = [run.listener.plugin for run in dispatch.runs]
    assert names == [listener.plugin for listener in looked.orders[0].listeners] == list(EXPECTED)
    assert {run.listener.style.value for run in dispatch.runs} == {"call_next", "wrapper", "plain"}
    assert {run.listener.scope.name for run in dispatch.runs} == {"global", "team", "reviewer"}
    assert dispatch.unreached == ()


def test_each_listener_is_named_with_exactly_what_it_changed(looked: Looked) -> None:
    dispatch = looked.traced.assembly.dispatch
    assert dispatch is not None
    assert {run.listener.plugin: changed(run) for run in dispatch.runs} == EXPECTED
    step = looked.traced.step
    assert step is not None
    assert {run.listener.plugin: {item[:2] for item in changed(run)} for run in step.runs} == EXPECTED_STEP
    (dropped,) = next(run for run in step.runs if run.listener.plugin == "postman").changes
    assert dropped.before.text == "spam"


def test_what_was_changed_stands_with_old_and_new(looked: Looked) -> None:
    dispatch = looked.traced.assembly.dispatch
    assert dispatch is not None
    runs = {run.listener.plugin: run for run in dispatch.runs}
    assert runs["travel"].inward[0].fields == {"value": ("Paris", "Rome")}
    assert runs["polish"].outward[0].fields == {"description": ("Does beta things.", "Does beta lovely things.")}
    assert runs["sorter"].outward[0].places == (2, 0)
    assert runs["shouting"].inward
    assert not runs["shouting"].outward
    assert runs["evolver"].handed_other
    assert not runs["postman"].handed_other, "it handed on what it was given"


def test_the_one_conflict_is_named_with_who_had_the_last_word(looked: Looked) -> None:
    dispatch = looked.traced.assembly.dispatch
    assert dispatch is not None
    (conflict,) = conflicts(dispatch)
    assert (conflict.lane, conflict.name) == ("sections", "house:rules")
    assert (conflict.earlier.listener.plugin, conflict.later.listener.plugin) == ("shouting", "whisper")


def test_plain_listeners_stand_beside_each_other_and_others_around_what_is_further_in(looked: Looked) -> None:
    dispatch = looked.traced.assembly.dispatch
    assert dispatch is not None
    parents = {
        run.listener.plugin: None if run.parent is None else dispatch.runs[run.parent].listener.plugin
        for run in dispatch.runs
    }
    assert parents["polish"] is None
    assert parents["whisper"] == "polish"
    assert parents["evolver"] == "postman"
    assert parents["reader"] == "postman"
    assert parents["style-guide"] == parents["quiet"] == parents["trimmer"] == "shouting"


# --- times ------------------------------------------------------------------------------------------------------------


async def test_own_time_is_total_time_without_what_is_further_in() -> None:
    class Outer:
        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            clock.append(100)
            result = await call_next()
            clock.append(30)
            return result

    class Inner:
        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            clock.append(7)
            return await call_next()

    class Provider:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("slow", self.text, order=1)

        def text(self, _: Any) -> str:
            clock.append(500)
            return "text"

    clock: list[int] = []
    async with Harness(plugins=[Provider(), Inner(), Outer()], autoload=False) as harness:
        with tracing(harness, now=lambda: sum(clock)) as tracer:
            await harness.assemble()
    (trace,) = tracer.assemblies
    assert trace.dispatch is not None
    outer, inner = trace.dispatch.runs
    assert (outer.listener.plugin, outer.total, outer.own) == ("outer", 137, 130)
    assert (inner.total, inner.own) == (7, 7)
    assert {run.name: run.total for run in trace.providers}["slow"] == 500
    assert trace.total == 637


async def test_every_provider_is_timed_and_named_with_its_place() -> None:
    async with twelve() as (harness, scope):
        traced = await traced_step(harness, scope)
    runs = {(run.kind, run.name) for run in traced.assembly.providers}
    assert {("section", "house:place"), ("variable", "city"), ("context", "weather"), ("context", "noise")} <= runs
    place = next(run.place for run in traced.assembly.providers if run.name == "house:place")
    assert place is not None
    assert place[0].endswith("_twelve.py")
    tools = next(run for run in traced.assembly.providers if run.kind == "tools")
    assert set(tools.tools) == {"alpha", "beta", "gamma"}


# --- what goes wrong --------------------------------------------------------------------------------------------------


class Failing:
    name = "failing"

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> None:
        assembly.sections.append(Section("half", "half done"))
        raise LookupError("no map")


class Catching:
    name = "catching"

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any, call_next: Any) -> Any:
        try:
            return await call_next()
        except LookupError:
            assembly.sections.append(Section("sorry", "There is no map."))
            return assembly


async def test_an_exception_is_told_with_who_raised_and_who_caught_it() -> None:
    async with Harness(plugins=[Failing(), Catching()], autoload=False) as harness:
        with tracing(harness) as tracer:
            assembly = await harness.assemble()
    assert assembly.section("sorry") is not None
    dispatch = tracer.dispatches()[0]
    catching, failing = dispatch.runs
    assert failing.raised is not None
    assert (failing.raised.kind, failing.raised.message) == ("LookupError", "no map")
    assert failing.raised.line == Failing.system_prompt_assemble.__code__.co_firstlineno + 3
    assert catching.raised is None
    assert catching.caught is not None
    assert catching.caught.kind == "LookupError"
    assert changed(catching) == {("sections", "added", "sorry")}, "what the other had added is not its doing"
    assert dispatch.failure is None


@pytest.mark.spec("UC-26")
async def test_an_uncaught_exception_is_the_traces_failure_with_its_note() -> None:
    async with Harness(plugins=[Failing()], autoload=False) as harness:
        with tracing(harness) as tracer, pytest.raises(LookupError):
            await harness.assemble()
        (trace,) = tracer.assemblies
        assert trace.failure is not None
        assert any("failing" in note and "system_prompt_assemble" in note for note in trace.failure.notes)
        assert trace.final is None
        assert trace.dispatch is not None
        assert trace.dispatch.failure is not None


async def test_a_failing_provider_is_named_and_the_providers_are_their_own_afterwards() -> None:
    class Broken:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("broken", self.text, order=1)

        def text(self, _: Any) -> str:
            raise OSError("disk")

    async with Harness(plugins=[Broken()], autoload=False) as harness:
        view = harness.prompt.view(harness.root)
        before = (view.sections._providers, view.contexts._providers, view.tools._providers, view.variable_calls)
        with tracing(harness) as tracer, pytest.raises(OSError, match="disk"):
            await harness.assemble()
        assert harness.prompt.view(harness.root) is view
        after = (view.sections._providers, view.contexts._providers, view.tools._providers, view.variable_calls)
        assert all(one is two for one, two in zip(before, after, strict=True))
    failed = [run for run in tracer.assemblies[0].providers if run.failure is not None]
    assert [run.name for run in failed] == ["broken"]


async def test_a_listener_that_answers_leaves_the_others_unreached() -> None:
    class Refusing:
        name = "refusing"

        @hookimpl(tryfirst=True)
        def agent_pre_step(self) -> Any:
            return Reject("not today")

    class After:
        name = "after"

        @hookimpl
        async def agent_pre_step(self, call_next: Any) -> Any:
            return await call_next()

    async with Harness(plugins=[After(), Refusing()], autoload=False) as harness:
        traced = await traced_step(harness, harness.root, ["hi"])
    assert traced.prepared is not None
    assert traced.prepared.rejected == "not today"
    step = traced.step
    assert step is not None
    assert [(run.listener.plugin, run.answered) for run in step.runs] == [("refusing", True)]
    assert [listener.plugin for listener in step.unreached] == ["after"]
    assert step.end is None
    assert step.result == snapshot(Reject("not today"))


async def test_a_call_next_style_answer_and_a_replacement_are_told_apart() -> None:
    class Short:
        name = "short"

        @hookimpl
        async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
            return Enter(step.messages)

    class Handing:
        name = "handing"

        @hookimpl(tryfirst=True)
        async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
            return await call_next(step.with_messages(*step.messages[:1]))

    async with Harness(plugins=[Short(), Handing()], autoload=False) as harness:
        traced = await traced_step(harness, harness.root, ["one", "two"])
    assert traced.step is not None
    handing, short = traced.step.runs
    assert handing.handed_other
    assert [change.kind for change in handing.inward] == ["removed"]
    assert short.answered
    assert short.changes == ()


async def test_what_enforcement_throws_away_is_told_with_the_reason() -> None:
    class Complete:
        name = "complete"

        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("all", "This is all.", order=5, complete=True)
            ctx.prompt.suppress_runtime_context()

        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            assembly.sections.append(Section("late", "too late"))

    async with Harness(plugins=[Complete()], autoload=False) as harness:
        with tracing(harness) as tracer:
            assembly = await harness.assemble()
    assert render_prompt(assembly) == "This is all."
    trace = tracer.assemblies[0]
    assert {change.name for change in trace.enforced} == {"harness:identity", "deployment:persona", "late"}
    assert "'all' is the complete prompt" in trace.enforced_why
    assert "suppressed" in trace.enforced_why


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the coroutine that nobody awaited
@pytest.mark.parametrize("style", ["twice", "unawaited", "none", "no_yield", "two_yields"])
async def test_a_traced_dispatch_breaks_the_same_rules_with_the_same_errors(style: str) -> None:
    class Twice:
        name = "wrong"

        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            await call_next()
            return await call_next()

    class Unawaited:
        name = "wrong"

        @hookimpl
        async def system_prompt_assemble(self, assembly: Any, call_next: Any) -> Any:
            call_next().close()
            return assembly

    class Nothing:
        name = "wrong"

        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            await call_next()

    class NoYield:
        name = "wrong"

        @hookimpl(wrapper=True)
        def system_prompt_assemble(self, assembly: Any) -> Any:
            if assembly is None:
                yield
            return assembly

    class TwoYields:
        name = "wrong"

        @hookimpl(wrapper=True)
        def system_prompt_assemble(self) -> Any:
            result = yield
            yield
            return result

    plugin = {"twice": Twice, "unawaited": Unawaited, "none": Nothing, "no_yield": NoYield, "two_yields": TwoYields}[
        style
    ]
    async with Harness(plugins=[plugin()], autoload=False) as harness:
        with pytest.raises(WaterfallError) as plain:
            await harness.assemble()
        with tracing(harness) as tracer, pytest.raises(WaterfallError) as traced:
            await harness.assemble()
    assert str(traced.value) == str(plain.value)
    assert traced.value.plugin == "wrong"
    assert tracer.assemblies[0].failure is not None


# --- on, off, and several at once -------------------------------------------------------------------------------------


async def test_a_traced_assembly_is_equal_to_an_untraced_one_and_shares_its_records() -> None:
    async with twelve() as (harness, scope):
        before = await harness.assemble(scope)
        with tracing(harness):
            during = await harness.assemble(scope)
        after = await harness.assemble(scope)
    assert before == during == after
    assert render_prompt(before) == render_prompt(during)
    assert all(one is two for one, two in zip(before.tools, during.tools, strict=True) if one.name != "beta")
    assert during.section("house:late") is before.section("house:late")


async def test_nothing_is_left_when_tracing_is_over() -> None:
    async with twelve() as (harness, scope):
        await harness.assemble(scope)
        with tracing(harness):
            await harness.prepare_step(scope, ["hi"])
        assert harness.prompt.watch is None
        for waterfall in harness.hooks.waterfalls.values():
            assert waterfall.compile is compile_chain
        with tracing(harness) as tracer:
            pass
        await harness.prepare_step(scope, ["hi"])
        assert not tracer.traces
        chain = harness.hooks.system_prompt_assemble.chain(scope)
        assert chain is not None
        assert type(chain).__name__ == "Chain"


@pytest.mark.spec("UC-25")
@pytest.mark.parametrize("order", ["inner first", "outer first"])
async def test_two_tracers_are_turned_off_in_any_order(order: str) -> None:
    async with twelve() as (harness, scope):
        one, two = tracing(harness), tracing(harness)
        first, second = one.__enter__(), two.__enter__()
        await harness.assemble(scope)
        left, kept = (two, first) if order == "inner first" else (one, second)
        last = one if left is two else two
        left.__exit__(None, None, None)
        await harness.assemble(scope)
        assert len(kept.traces) == 2
        assert len(first.traces) + len(second.traces) == 3
        last.__exit__(None, None, None)
        await harness.assemble(scope)
        assert len(kept.traces) == 2
        assert harness.prompt.watch is None
        assert harness.hooks.system_prompt_assemble.compile is compile_chain


@pytest.mark.spec("UC-25")
async def test_a_foreign_compiler_that_came_in_between_is_left_alone_and_no_longer_traced() -> None:
    async with twelve() as (harness, scope):
        hook = harness.hooks.system_prompt_assemble
        with tracing(harness) as tracer:
            ours = hook.compile
            hook.compile = lambda spec, listeners: ours(spec, listeners)
            foreign = hook.compile
            hook.recompile()
            await harness.assemble(scope)
        assert hook.compile is foreign
        await harness.assemble(scope)
        assert len(tracer.traces) == 1
        assert type(hook.chain(scope)).__name__ == "Chain"


async def test_sinks_are_called_with_each_trace_and_only_so_many_are_kept() -> None:
    seen: list[Any] = []
    async with twelve() as (harness, scope):
        with tracing(harness, seen.append, limit=2) as tracer:
            for _ in range(3):
                await harness.assemble(scope)
    assert len(seen) == 3
    assert list(tracer.traces) == seen[1:]


async def test_more_nested_listeners_than_the_stack_would_take_when_traced_are_traced_nevertheless() -> None:
    class Around:
        def __init__(self, number: int) -> None:
            self.name = f"around-{number}"

        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            return await call_next()

    import sys

    limit = sys.getrecursionlimit()
    async with Harness(plugins=[Around(number) for number in range(300)], autoload=False) as harness:
        with tracing(harness) as tracer:
            await harness.assemble()
    assert len(tracer.dispatches()[0].runs) == 300
    assert sys.getrecursionlimit() == limit


async def test_a_trace_says_whom_it_is_about_and_the_subject_of_a_scope_alone_is_empty() -> None:
    async with twelve() as (harness, scope):
        with tracing(harness, clock=count(5).__next__) as tracer:
            await harness.assemble(AssembleContext(scope=scope, turn=3, step=2, cwd="/tmp"))
            await harness.assemble()
    assert dict(tracer.assemblies[0].subject) == {"turn": 3, "step": 2, "cwd": "/tmp"}
    assert tracer.assemblies[0].scope == "reviewer"
    assert (tracer.assemblies[1].scope, dict(tracer.assemblies[1].subject)) == ("global", {})
    assert tracer.assemblies[0].started_ms == 5


async def test_a_harness_without_listeners_is_traced_too() -> None:
    class Only:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.tools(lambda _: [ToolSchema("t")])

    async with Harness(plugins=[Only()], autoload=False) as harness:
        with tracing(harness) as tracer:
            assembly = await harness.assemble()
    assert isinstance(assembly, PromptAssembly)
    trace = tracer.assemblies[0]
    assert trace.dispatch is not None
    assert trace.dispatch.runs == []
    assert trace.given == snapshot(assembly)


async def test_traces_are_plain_json() -> None:
    import json

    async with twelve() as (harness, scope):
        traced = await traced_step(harness, scope, ["hello", "spam"])
    assert traced.step is not None
    told = json.loads(json.dumps([traced.assembly.to_json(), traced.step.to_json()]))
    by_plugin = {run["plugin"]: run for run in told[0]["waterfall"]["runs"]}
    assert by_plugin["travel"]["inward"][0]["fields"]["value"] == {"before": "Paris", "after": "Rome"}


async def test_attrs_evolve_of_variables_is_blamed_for_what_it_changed_alone() -> None:
    class Functional:
        name = "functional"

        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> Any:
            return attrs.evolve(assembly, variables={**assembly.variables, "mood": "good"})

    async with twelve() as (harness, scope):
        await harness.install(Functional(), scope=scope)
        traced = await traced_step(harness, scope)
    assert traced.assembly.dispatch is not None
    run = next(run for run in traced.assembly.dispatch.runs if run.listener.plugin == "functional")
    assert changed(run) == {("variables", "added", "mood")}


async def test_dispatches_at_the_same_time_do_not_meet() -> None:
    class Waiting:
        name = "waiting"

        @hookimpl
        async def system_prompt_assemble(self, assembly: Any, context: Any, call_next: Any) -> Any:
            assembly.sections.append(Section(f"turn {context.turn}", "x"))
            await anyio.lowlevel.checkpoint()
            result = await call_next()
            await anyio.lowlevel.checkpoint()
            return result

    async with twelve() as (harness, scope):
        await harness.install(Waiting(), scope=scope)
        with tracing(harness) as tracer:
            async with anyio.create_task_group() as tasks:
                for turn in range(1, 6):
                    tasks.start_soon(harness.assemble, AssembleContext(scope=scope, turn=turn))
    assert sorted(trace.subject["turn"] for trace in tracer.assemblies) == [1, 2, 3, 4, 5]
    for trace in tracer.assemblies:
        assert trace.dispatch is not None
        runs = {run.listener.plugin: changed(run) for run in trace.dispatch.runs}
        assert runs.pop("waiting") == {("sections", "added", f"turn {trace.subject['turn']}")}
        assert runs == EXPECTED


async def test_a_cancelled_dispatch_is_traced_as_such_and_leaves_nothing() -> None:
    class Hanging:
        name = "hanging"

        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            started.set()
            await anyio.sleep_forever()

    started = anyio.Event()
    async with Harness(plugins=[Hanging()], autoload=False) as harness:
        with tracing(harness) as tracer:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harness.assemble)
                await started.wait()
                tasks.cancel_scope.cancel()
        assert harness.prompt.watch is None
    (trace,) = tracer.assemblies
    assert trace.failure is not None
    assert trace.failure.kind in ("CancelledError", "Cancelled")
    (run,) = tracer.dispatches()[0].runs
    assert run.raised is not None


async def test_what_a_listener_assembles_by_the_way_is_not_taken_for_the_step() -> None:
    class Nosy:
        name = "nosy"

        @hookimpl
        async def system_prompt_assemble(self, context: Any, call_next: Any) -> Any:
            if context.scope.name == "asked":
                await context.scope.harness.assemble(context.scope.harness.scope("other"))
            return await call_next()

        @hookimpl
        async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
            await step.scope.harness.assemble(step.scope.harness.scope("another"))
            return await call_next()

    async with Harness(plugins=[Nosy()], autoload=False) as harness:
        traced = await traced_step(harness, harness.scope("asked"), ["hi"])
    assert traced.assembly.scope == "asked"
    assert traced.assembly.dispatch is not None
    assert [run.listener.plugin for run in traced.assembly.dispatch.runs] == ["nosy"]
