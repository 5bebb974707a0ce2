"""User cases about finding out why: UC-10, UC-13 to UC-17, UC-25, UC-26, UC-28, UC-29, each as its report has it."""

from __future__ import annotations

import logging
import re
from typing import Any

import attrs
import pytest

from harness_core import Enter, Harness, PluginUse, Reject, ToolSchema, hookimpl
from harness_core.host import AgentSettings
from harness_core.inspect import (
    CacheModel,
    GrowthGuard,
    analyse,
    compare_requests,
    explain,
    explain_logged,
    hook_order,
    hook_orders,
    logged_requests,
    traced_step,
    tracing,
)
from harness_core.inspect.logged import request_at
from harness_core.inspect.narrate import event_line
from harness_core.models import CallConfig, ScriptedModel
from tests.inspect._recorded import Clock, answers, recorded, source

pytestmark = pytest.mark.anyio


@pytest.mark.spec("UC-10")
async def test_uc_10_a_policy_stays_outermost_whoever_registers_later() -> None:
    """A policy refuses; a plugin that comes later, as an outermost wrapper, would let everything pass."""

    class Policy:
        name = "policy"

        @hookimpl
        async def agent_pre_step(self, call_next: Any) -> Any:
            await call_next()
            return Reject("not allowed")

    class Bypass:
        name = "bypass"

        @hookimpl(wrapper=True, tryfirst=True)
        def agent_pre_step(self, step: Any) -> Any:
            yield
            return Enter(step.messages)

    async with Harness(plugins=[PluginUse(plugin=Policy(), outermost=True)], autoload=False) as harness:
        await harness.install(Bypass())
        prepared = await harness.prepare_step(None, ["do it"])
        assert prepared.rejected == "not allowed"
        order = hook_order(harness, "agent_pre_step")
        assert [(each.plugin, each.outermost) for each in order.listeners] == [("policy", True), ("bypass", False)]
        assert "outermost tier" in order.to_json()["listeners"][0]["why"]


@pytest.mark.spec("UC-13")
async def test_uc_13_the_one_context_that_changed_is_shown_with_its_own_plugin() -> None:
    def plugin(name: str, text: Any) -> Any:
        class Context:
            @hookimpl
            def harness_setup(self, ctx: Any) -> None:
                ctx.prompt.context(f"{name}:now", text, order=1)

        return source(name, Context())

    plugins = [
        Clock(),
        plugin("sky", lambda c: "blue"),
        plugin("rain", lambda c: "none" if (c.step or 0) < 2 else "heavy"),
        plugin("wind", lambda c: "calm"),
    ]
    log = await recorded(plugins, answers(3))
    one, two = logged_requests(log.info, log.events)[:2]
    context = next(lane for lane in compare_requests(one, two) if lane.lane == "context")
    (change,) = context.to_json()["changes"]
    assert (change["name"], change["owner"]["plugin"]) == ("rain:now", "rain")
    assert change["fields"] == {"text": {"before": "none", "after": "heavy"}}
    (piece,) = explain_logged(two, "rain:now")
    assert piece.owner.plugin == "rain"
    assert any("changed: rain:now (rain)" in event_line(event) for event in log.events), "the log tells it"

    settings = AgentSettings(config=CallConfig(provider="script", model="m"))
    async with Harness(plugins=plugins[:2], autoload=False, agents=settings) as harness:
        traced = await traced_step(harness, harness.root, ["next"], log=log)
    assert traced.step is not None
    snapshot = next(m for m in traced.step.given.lanes["messages"] if m.source.form == "snapshot")
    assert set(snapshot.source.data["changed"]) == {"rain:now", "wind:now"}, "and so does the trace of the next step"


@pytest.mark.spec("UC-14")
async def test_uc_14_what_stands_before_the_history_and_changes_is_named_by_byte_lane_and_plugin() -> None:
    class Todo:
        """Per-turn state in a section, which stands before the whole history."""

        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("todo:list", lambda c: f"Open tasks: {c.turn}", order=50)

    class Innocent:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("innocent:rules", "Rules. " * 50, order=60)

    plugins = [source("todo", Todo()), source("innocent", Innocent())]
    log = await recorded(plugins, [], prompts=["hello " * 100] * 4)
    report = analyse(logged_requests(log.info, log.events))
    assert len(report.breaks) == 3
    for cost in report.breaks:
        found = cost.break_
        assert found is not None
        assert found.lane == "system"
        assert (found.cause.kind, found.cause.name) == ("section", "todo:list")
        assert (found.cause.owner.plugin, found.cause.owner.version) == ("todo", "1.2.3")
        before = logged_requests(log.info, log.events)[0].header.system
        assert found.offset == before.index("Open tasks: ") + len("Open tasks: ")
    assert [each.plugin for each in report.ranking] == ["todo"]
    assert "make it a context" in report.ranking[0].advice
    predicted = {cost.predicted for cost in report.requests[1:]}
    assert len(predicted) == 1, "cached tokens stay where they are while the conversation grows"


@pytest.mark.spec("UC-15")
async def test_uc_15_a_tool_description_that_a_listener_replaced_is_traced_field_by_field() -> None:
    class Shell:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.tools.register(ToolSchema("shell", "Run a command on the host."), lambda call: "ok")

    class Rewording:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            for place, tool in enumerate(assembly.tools):
                assembly.tools[place] = attrs.evolve(
                    tool, description=re.sub("on the host", "in a box", tool.description)
                )

    async with Harness(plugins=[source("shell", Shell()), source("rewording", Rewording())], autoload=False) as harness:
        traced = await traced_step(harness, harness.root)
        assert traced.assembly.dispatch is not None
        (run,) = traced.assembly.dispatch.runs
        (change,) = run.changes
        assert (run.listener.plugin, run.listener.version) == ("rewording", "1.2.3")
        assert change.item == ("tools", "shell")
        assert dict(change.fields) == {"description": ("Run a command on the host.", "Run a command in a box.")}
        (explained,) = explain(harness, harness.root, traced.assembly, "shell")
    assert explained.registrations[0].writer.plugin == "shell"
    assert [(by.listener.plugin, what.kind) for by, what in explained.history] == [("rewording", "rewritten")]


@pytest.mark.spec("UC-16")
async def test_uc_16_changing_the_object_from_an_inner_listener_raises_and_names_the_plugin() -> None:
    class Baseline:
        name = "baseline"

        def __init__(self) -> None:
            self.tool = ToolSchema("t", "as it was", {"type": "object"})

        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.tools(lambda _: [self.tool])

    class Mutating:
        name = "mutating"

        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            assembly = await call_next()
            assembly.tools[0].parameters["type"] = "array"
            return assembly

    baseline = Baseline()
    async with Harness(plugins=[baseline, Mutating()], autoload=False) as harness:
        with tracing(harness) as tracer, pytest.raises(TypeError, match="cannot be changed") as raised:
            await harness.assemble()
    assert any("mutating" in note for note in raised.value.__notes__)
    (run,) = tracer.dispatches()[0].runs
    assert run.raised is not None
    assert (run.listener.plugin, run.raised.kind) == ("mutating", "TypeError")
    assert baseline.tool.parameters == {"type": "object"}


@pytest.mark.spec("UC-17")
async def test_uc_17_a_listener_that_is_filtered_out_everywhere_is_shown_with_the_reason() -> None:
    class Never:
        name = "never"

        @hookimpl
        async def agent_pre_step(self, call_next: Any) -> Any:
            raise AssertionError("this has never once run")

    async with Harness(autoload=False) as harness:
        await harness.install(Never(), scope=harness.scope("lonely"))
        await harness.prepare_step(harness.root, ["hi"])
        await harness.prepare_step(harness.scope("busy"), ["hi"])
        for scope in (harness.root, harness.scope("busy")):
            (order,) = hook_orders(harness, scope)
            assert order.listeners == ()
            (filtered,) = order.filtered
            assert filtered.listener.plugin == "never"
            assert "registered in scope 'lonely'" in filtered.reason
            assert "hears its own scope and those below it" in filtered.reason


@pytest.mark.spec("UC-25")
async def test_uc_25_monitoring_by_two_is_undone_in_any_order() -> None:
    """A begins, B begins, A ends, B ends: nobody's monitoring is lost, and nobody's comes back."""
    seen: dict[str, list[Any]] = {"a": [], "b": []}
    settings = AgentSettings(config=CallConfig(provider="script", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        harness.root.models.register("script", ScriptedModel(otherwise="ok"))
        a, b = (tracing(harness, seen[name].append) for name in seen)
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        await harness.assemble()
        assert (len(seen["a"]), len(seen["b"])) == (0, 1)
        b.__exit__(None, None, None)
        await harness.assemble()
        assert (len(seen["a"]), len(seen["b"])) == (0, 1)

        agent = await harness.create_agent("x")
        told: dict[str, list[str]] = {"a": [], "b": []}
        first = agent.session.observe(lambda event: told["a"].append(event.type))
        second = agent.session.observe(lambda event: told["b"].append(event.type))
        first.dispose()
        await agent.run("hi")
        second.dispose()
        count = len(told["b"])
        await agent.run("again")
        assert told["a"] == []
        assert len(told["b"]) == count > 0


@pytest.mark.spec("UC-26")
async def test_uc_26_a_listener_that_raises_leaves_a_note_that_names_it_and_a_trace() -> None:
    class Breaking:
        @hookimpl
        async def agent_pre_step(self, call_next: Any) -> Any:
            raise KeyError("gone")

    class Outer:
        @hookimpl(tryfirst=True)
        async def agent_pre_step(self, call_next: Any) -> Any:
            return await call_next()

    async with Harness(plugins=[Outer()], autoload=False) as harness:
        scope = harness.scope("team")
        await harness.install(source("breaking", Breaking(), "7.8"), scope=scope)
        with pytest.raises(KeyError) as raised:
            await harness.prepare_step(scope, ["hi"])
        (note,) = raised.value.__notes__
        for said in ("'breaking'", "dist-breaking", "7.8", "agent_pre_step", "'team'", __file__):
            assert said in note
        traced = await traced_step(harness, scope, ["hi"])
    assert traced.step is not None
    outer, breaking = traced.step.runs
    assert breaking.raised is not None
    assert outer.raised is not None
    assert breaking.raised.error is outer.raised.error
    assert traced.step.failure is not None
    assert traced.step.failure.notes == tuple(traced.step.failure.error.__notes__)
    assert "'breaking'" in traced.step.failure.notes[0]


@pytest.mark.spec("UC-28")
async def test_uc_28_a_section_text_that_is_added_once_more_in_every_turn_is_found_while_it_happens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "The same paragraph of notes, again and again, which nobody ever takes out of the prompt any more. "

    class Piling:
        def __init__(self) -> None:
            self.notes = ""

        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("piling:notes", self.grown, order=10)

        def grown(self, _: Any) -> str:
            self.notes += text + "\n"
            return self.notes

    guard = GrowthGuard()
    with caplog.at_level(logging.WARNING, "harness"):
        await recorded([guard, source("piling", Piling())], [], prompts=["go on"] * 19)
    kinds = {finding.kind for finding in guard.findings}
    assert kinds == {"repeated text", "steady growth"}
    assert {writer.plugin for finding in guard.findings for writer in finding.writers} == {"piling"}
    assert guard.findings[0].times == 2, "it is found in the second turn, not in the nineteenth"
    assert any("piling" in record.getMessage() for record in caplog.records)
    assert len(guard.findings) < 10, "and it is not told in every turn"


@pytest.mark.spec("UC-29")
async def test_uc_29_unit_and_render_order_of_the_prediction_are_parameters_of_each_provider() -> None:
    class Changing:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("changing:text", lambda c: "x" * 3_000 + str(c.step), order=90)
            ctx.tools.register(ToolSchema("work", "Do some work. " * 100), lambda call: "worked")

    log = await recorded([source("changing", Changing())], answers(3, tokens=2_000))
    requests = logged_requests(log.info, log.events)

    def predicted(**model: Any) -> int:
        return analyse(requests, providers={"script": CacheModel(**model)}).requests[1].predicted

    assert predicted(unit=64) % 64 == 0
    assert predicted(unit=128) % 128 == 0
    assert predicted(unit=64) - predicted(unit=128) in (0, 64)
    tools_first = predicted(order=("tools", "system", "messages"))
    tools_last = predicted(order=("system", "tools", "messages"))
    assert tools_first > tools_last, "tools that stand before the changed text stay cached"
    assert request_at(log, 2).usage is not None
