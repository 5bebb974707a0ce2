"""Configuration, headers, routes and retries of an agent's requests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from harness_core.hooks import RequestFailure, RequestStep, Retry, hookimpl
from harness_core.models import (
    CallConfig,
    FailureFacts,
    Finish,
    ResolvedCall,
    ScriptedAnswer,
    ScriptedModel,
    TextDelta,
    ToolSchema,
)
from harness_core.session import FileStore, HeaderWritten, RequestContext, RequestDispatch, RequestRetry, verify

pytestmark = pytest.mark.anyio

BUSY = FailureFacts(code="OVERLOADED", message="busy", status=503, retryable=True)


class Retrying:
    def __init__(self, *delays: float) -> None:
        self.delays = list(delays)
        self.failures: list[RequestFailure] = []

    @hookimpl
    async def agent_request_error(self, failure: RequestFailure, call_next: Any) -> Any:
        self.failures.append(failure)
        return Retry(delay=self.delays.pop(0)) if self.delays else await call_next()


class Choosing:
    """Sets fields of the configuration, one mapping for each attempt."""

    def __init__(self, *values: dict[str, Any]) -> None:
        self.values = list(values)
        self.proposed: list[CallConfig] = []

    @hookimpl
    def agent_request(self, config: CallConfig, step: RequestStep) -> CallConfig:
        self.proposed.append(config)
        return attrs.evolve(config, **(self.values.pop(0) if self.values else {}))


@pytest.mark.spec("STEP-02")
async def test_a_failed_request_is_repeated_when_a_listener_says_so(open_stage: Any) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    plugin = Retrying(0.5, 0)
    half = ScriptedAnswer(text="half", failure=BUSY)
    async with open_stage(plugin, answers=[BUSY, half, "whole"], sleep=sleep) as stage:
        result = await stage.agent.run("hi")
        assert (result.text, slept) == ("whole", [0.5])
        assert [(each.attempt, each.facts) for each in plugin.failures] == [(1, BUSY), (2, BUSY)]
        assert [each.attempt for each in stage.data(RequestDispatch)] == [1, 2, 3]
        assert [(each.attempt, each.delay_ms, each.failure) for each in stage.data(RequestRetry)] == [
            (1, 500, BUSY),
            (2, 0, BUSY),
        ]
        assert [m.text for m in stage.agent.session.messages] == ["hi", "whole"]
        assert verify(stage.agent.session.info, stage.agent.session.events).requests == 3


@pytest.mark.spec("STEP-02")
async def test_an_aborted_finish_is_offered_too_and_a_refusal_ends_the_turn(open_stage: Any) -> None:
    plugin = Retrying()
    async with open_stage(plugin, answers=[ScriptedAnswer(chunks=[Finish("aborted")])]) as stage:
        result = await stage.agent.run("hi")
        assert [each.facts.code for each in plugin.failures] == ["ABORTED"]
        assert result.failure is not None and result.failure.code == "ABORTED"


@pytest.mark.spec("STEP-02")
async def test_errors_of_plugins_and_of_the_loop_are_not_offered(open_stage: Any) -> None:
    class Broken:
        @hookimpl
        def agent_request(self, config: CallConfig) -> None:
            raise OSError("policy file missing")

    plugin = Retrying(0, 0)
    async with open_stage(plugin, Broken()) as stage:
        result = await stage.agent.run("hi")
        assert (result.reason, plugin.failures) == ("error", [])


@pytest.mark.spec("STEP-02")
async def test_a_retry_listener_that_raises_ends_the_turn(open_stage: Any) -> None:
    class Broken:
        @hookimpl
        def agent_request_error(self, failure: RequestFailure) -> None:
            raise OSError("no disk")

    async with open_stage(Broken(), answers=[BUSY]) as stage:
        result = await stage.agent.run("hi")
        assert result.failure is not None and "no disk" in result.failure.message
        assert stage.types[-2:] == ["step/end", "turn/end"]


@pytest.mark.spec("STEP-01")
async def test_a_retry_reuses_system_text_and_tools_and_rebuilds_the_rest(open_stage: Any) -> None:
    rendered: list[int] = []

    class Changing(Retrying):
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            self.ctx = ctx
            ctx.prompt.section("count", lambda c: f"assembled {len(rendered)} {rendered.append(1) or ''}", order=1)

        @hookimpl
        def agent_request(self, config: CallConfig, step: RequestStep) -> CallConfig:
            if (step.turn, step.attempt) == (1, 1):
                self.ctx.tools.register(ToolSchema("late"))
            return attrs.evolve(config, temperature=step.attempt / 2)

    async with open_stage(Changing(0), answers=[BUSY, "ok", "ok"]) as stage:
        await stage.agent.run("hi")
        first, second = stage.model.requests
        assert rendered == [1]
        assert (first.header.system, first.header.tools) == (second.header.system, second.header.tools)
        assert [each.header.config.temperature for each in stage.data(HeaderWritten)] == [0.5, 1.0]
        assert [each.reason for each in stage.data(HeaderWritten)] == ["initial", "change"]
        await stage.agent.run("again")
        assert [tool.name for tool in stage.model.requests[-1].header.tools] == ["late"]


@pytest.mark.spec("STEP-04")
async def test_a_registration_change_during_a_step_acts_from_the_next_step_on(open_stage: Any) -> None:
    def tools(harness: Any) -> None:
        def handler(call: Any) -> str:
            harness.root.tools.register(ToolSchema("late"), lambda call: "late ran")
            harness.root.prompt.section("late", "Late section.", order=5)
            return "registered"

        harness.root.tools.register(ToolSchema("look"), handler)

    answers = [ScriptedAnswer(calls=[("look", {}), ("late", {})]), ScriptedAnswer(calls=[("late", {})]), "done"]
    async with open_stage(answers=answers, prepare=tools) as stage:
        await stage.agent.run("hi")
        results = [m.text for m in stage.agent.session.messages if hasattr(m, "call_id")]
        assert results == ["registered", "There is no tool called 'late'.", "late ran"]
        assert [len(request.header.tools) for request in stage.model.requests] == [1, 2, 2]
        assert ["Late section." in request.header.system for request in stage.model.requests] == [False, True, True]


class Supplying(ScriptedModel):
    """Fills in an effort and a limit of its own."""

    def __init__(self, effort: str, **options: Any) -> None:
        super().__init__(**options)
        self.effort = effort

    def resolve(self, config: CallConfig) -> ResolvedCall:
        resolved = super().resolve(config)
        mine = {} if config.effort else {"effort": self.effort}
        return attrs.evolve(
            resolved, config=attrs.evolve(resolved.config, **mine), supplied=resolved.supplied | set(mine)
        )


@pytest.mark.spec("HDR-05")
async def test_the_adapter_s_values_are_taken_anew_and_explicit_ones_persist(open_stage: Any) -> None:
    plugin = Choosing({"temperature": 0.2}, {}, {"provider": "other"})
    other = Supplying("low", otherwise="other")
    supplying = Supplying("high", otherwise="fine")

    def adapters(harness: Any) -> None:
        harness.root.models.register("high", supplying)
        harness.root.models.register("other", other)

    async with open_stage(plugin, prepare=adapters, provider="high", model="x") as stage:
        for _ in range(3):
            await stage.agent.run("hi")
        configs = [each.header.config for each in stage.data(HeaderWritten)]
        assert [(c.provider, c.model, c.effort, c.temperature) for c in configs] == [
            ("high", "x", "high", 0.2),
            ("other", "x", "low", 0.2),
        ]
        assert [each.effort for each in plugin.proposed] == [None, None, None]
        assert [each.temperature for each in plugin.proposed] == [None, 0.2, 0.2]
        assert [each.header.supplied for each in stage.data(HeaderWritten)] == [{"effort"}, {"effort"}]


@pytest.mark.spec("HDR-03", "HDR-05")
@pytest.mark.parametrize(
    ("named", "effort"), [({}, "max"), ({"model": "m2"}, None), ({"provider": "other"}, None), ({"model": "m1"}, "max")]
)
async def test_an_explicit_effort_is_restored_for_the_same_route_only(
    open_stage: Any, tmp_path: Any, named: dict[str, str], effort: str | None
) -> None:
    store = FileStore(tmp_path)
    async with open_stage(Choosing({"effort": "max", "temperature": 0.5}), store=store) as stage:
        await stage.agent.run("hi")
        await stage.agent.aclose()
    other = ScriptedModel(otherwise="x")
    async with open_stage(
        store=store, resume=True, prepare=lambda h: h.root.models.register("other", other), **named
    ) as stage:
        await stage.agent.run("hi")
        await stage.agent.run("hi")
        last = stage.data(HeaderWritten)
        assert [each.reason for each in last] == ["initial", "resume"]
        assert (last[-1].header.config.effort, last[-1].header.config.temperature) == (effort, 0.5)


async def test_configured_values_start_the_next_request_and_stay(open_stage: Any) -> None:
    async with open_stage() as stage:
        stage.agent.configure(temperature=0.3)
        stage.agent.configure(seed=7)
        await stage.agent.run("hi")
        stage.agent.configure(model="m2")
        await stage.agent.run("hi")
        await stage.agent.run("hi")
        configs = [each.header.config for each in stage.data(HeaderWritten)]
        assert [(c.model, c.temperature, c.seed) for c in configs] == [("m1", 0.3, 7), ("m2", 0.3, 7)]


@pytest.mark.spec("HDR-05")
@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"provider": None}, "No model provider is named"),
        ({"provider": "nobody"}, "Nobody serves the model provider 'nobody'"),
    ],
)
async def test_without_a_provider_the_turn_ends_with_a_clear_error(
    open_stage: Any, choice: dict[str, Any], words: str
) -> None:
    async with open_stage(Choosing(choice)) as stage:
        result = await stage.agent.run("hi")
        assert result.reason == "error" and result.failure is not None
        assert words in result.failure.message and "'script'" in result.failure.message
        assert stage.data(HeaderWritten) == stage.data(RequestDispatch) == []


@pytest.mark.spec("HDR-05")
async def test_without_a_model_the_turn_ends_with_a_clear_error(open_stage: Any) -> None:
    class Plain(ScriptedModel):
        def resolve(self, config: CallConfig) -> ResolvedCall:
            return ResolvedCall(config=config)

    async with open_stage(
        Choosing({"provider": "plain", "model": None}), prepare=lambda h: h.root.models.register("plain", Plain())
    ) as stage:
        result = await stage.agent.run("hi")
        assert result.failure is not None and "No model is named for the provider 'plain'" in result.failure.message


@pytest.mark.spec("HDR-06")
async def test_one_registration_serves_a_request_even_when_replaced_meanwhile(open_stage: Any) -> None:
    used: list[str] = []

    class Swapping(ScriptedModel):
        def __init__(self, name: str) -> None:
            super().__init__(otherwise="x")
            self.name = name
            self.swap: Any = None

        def resolve(self, config: CallConfig) -> ResolvedCall:
            used.append(f"resolve {self.name}")
            if self.swap is not None:
                self.swap()
            return super().resolve(config)

        def stream(self, request: Any) -> Any:
            used.append(f"stream {self.name}")
            return super().stream(request)

    old, new = Swapping("old"), Swapping("new")

    def adapters(harness: Any) -> None:
        handle = harness.root.models.register("swap", old)

        def swap() -> None:
            old.swap = None
            handle.dispose()
            harness.root.models.register("swap", new)

        old.swap = swap

    async with open_stage(prepare=adapters, provider="swap") as stage:
        await stage.agent.run("hi")
        await stage.agent.run("hi")
        assert used == ["resolve old", "stream old", "resolve new", "stream new"]


@pytest.mark.spec("LOG-01")
async def test_the_route_is_logged_when_it_changes_only(open_stage: Any) -> None:
    async with open_stage() as stage:
        for model in ("m1", "m1", "m2", "m1"):
            stage.agent.configure(model=model)
            await stage.agent.run("hi")
        assert [each.model for each in stage.data(RequestContext)] == ["m1", "m2", "m1"]


@pytest.mark.spec("HDR-03", "REQ-01")
async def test_resuming_in_another_process_gives_the_same_header_and_messages(open_stage: Any, tmp_path: Any) -> None:
    def setting(harness: Any) -> None:
        harness.root.prompt.section("s", "Stable.", order=1)
        harness.root.prompt.context("c", "sunny", order=1)
        harness.root.tools.register(ToolSchema("look", "Look.", {"type": "object"}), lambda call: "seen")

    store = FileStore(tmp_path)
    async with open_stage(store=store, prepare=setting, answers=[ScriptedAnswer(calls=[("look", {})]), "a"]) as stage:
        await stage.agent.run("hi")
        before = stage.agent.session.request()
        await stage.agent.aclose()
    async with open_stage(store=store, prepare=setting, resume=True) as stage:
        await stage.agent.run("again")
        after = stage.model.requests[0]
        assert after.header == before.header
        assert list(after.messages)[: len(before.messages)] == list(before.messages)
        assert [m.text for m in list(after.messages)[len(before.messages) :]] == ["again"]
        assert verify(stage.agent.session.info, stage.agent.session.events).ok


@pytest.mark.spec("D7")
async def test_the_provenance_of_a_header_names_who_contributed_each_span(open_stage: Any) -> None:
    class Weather:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("how", "Ask for the forecast.", order=120)
            ctx.tools.register(ToolSchema("forecast"), lambda call: "sun")

    async with open_stage(Weather()) as stage:
        await stage.agent.run("hi")
        (written,) = stage.data(HeaderWritten)
        system = written.header.system
        spans = {part["name"]: system[slice(*part["span"])] for part in written.provenance["sections"]}
        assert spans["how"] == "Ask for the forecast."
        assert "\n\n".join(spans.values()) == system
        owners = {
            part["name"]: part.get("plugin") for part in written.provenance["sections"] + written.provenance["tools"]
        }
        assert owners["how"] == owners["forecast"] is not None


@pytest.mark.spec("UC-16")
async def test_a_listener_cannot_change_what_another_step_was_told(open_stage: Any) -> None:
    class Mutating:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            assembly.tools[0].parameters["x"] = 1

    async with open_stage(
        Mutating(), prepare=lambda h: h.root.tools.register(ToolSchema("look", "", {"a": 1}))
    ) as stage:
        result = await stage.agent.run("hi")
        assert result.failure is not None
        assert "cannot be changed" in result.failure.message and "utating" in result.failure.message
        assert stage.model.requests == []


async def test_a_connection_is_left_when_its_answer_is_whole(open_stage: Any) -> None:
    class Watched(ScriptedModel):
        closed = 0

        def stream(self, request: Any) -> Any:
            @asynccontextmanager
            async def open_stream() -> Any:
                async def chunks() -> Any:
                    yield TextDelta("a")
                    yield Finish("stop")
                    raise AssertionError("read past the end")

                try:
                    yield chunks()
                finally:
                    self.closed += 1

            return open_stream()

    model = Watched()
    async with open_stage(prepare=lambda h: h.root.models.register("watched", model), provider="watched") as stage:
        assert (await stage.agent.run("hi")).text == "a"
        assert model.closed == 1
