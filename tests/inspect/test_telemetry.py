"""OpenTelemetry: turns, requests and tools under their conventional names, dispatches inside of their turn."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core import Harness, HarnessError, ToolSchema, hookimpl
from harness_core.host import AgentSettings
from harness_core.inspect import Telemetry, session_spans, telemetry
from harness_core.models import CallConfig, FailureFacts, ScriptedAnswer, ScriptedModel, Usage
from tests.inspect._recorded import answers, recorded

pytestmark = pytest.mark.anyio

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")


@pytest.fixture
def exported() -> Any:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


class Working:
    name = "working"

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.tools.register(ToolSchema("work", "Do some work."), lambda call: "worked")

    @hookimpl
    async def agent_pre_step(self, call_next: Any) -> Any:
        return await call_next()


async def run(provider: Any, *script: Any) -> None:
    settings = AgentSettings(config=CallConfig(provider="script", model="m1", temperature=0.5))
    async with Harness(plugins=[Working()], autoload=False, agents=settings) as harness:
        harness.root.models.register("script", ScriptedModel(*script, otherwise="fine"))
        async with telemetry(harness, provider):
            agent = await harness.create_agent("a1")
            await agent.run("go")


def tree(spans: Any) -> dict[str, list[str]]:
    """Names of spans by the name of what they are inside of."""
    by_id = {span.context.span_id: span for span in spans}
    found: dict[str, list[str]] = {}
    for span in sorted(spans, key=lambda span: span.start_time):
        parent = by_id[span.parent.span_id].name if span.parent is not None else ""
        found.setdefault(parent, []).append(span.name)
    return found


async def test_a_turn_is_one_trace_with_requests_tools_and_dispatches_inside(exported: Any) -> None:
    provider, exporter = exported
    usage = Usage(input_tokens=100, output_tokens=7, cached_tokens=64)
    await run(provider, ScriptedAnswer(calls=[("work", {})], usage=usage), "done")
    spans = exporter.get_finished_spans()
    found = tree(spans)
    assert found[""] == ["invoke_agent a1"]
    inside = found["invoke_agent a1"]
    assert {"step 1", "step 2", "harness.assemble"} <= set(inside)
    assert sum(names.count("chat m1") for names in found.values()) == 2
    assert "execute_tool work" in found["step 1"]
    assert "harness.listener working" in found["harness.waterfall agent_pre_step"]
    assert "harness.waterfall system_prompt_assemble" in found["harness.assemble"]
    chat = next(span for span in spans if span.name == "chat m1")
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.provider.name"] == "script"
    assert chat.attributes["gen_ai.request.model"] == "m1"
    assert chat.attributes["gen_ai.request.temperature"] == 0.5
    assert chat.attributes["gen_ai.usage.input_tokens"] == 100
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 64
    assert chat.attributes["gen_ai.conversation.id"] == "a1"
    assert chat.kind.name == "CLIENT"
    tool = next(span for span in spans if span.name == "execute_tool work")
    assert tool.attributes["gen_ai.tool.call.id"].startswith("call-")
    listener = next(span for span in spans if span.name == "harness.listener working")
    assert listener.attributes["code.file.path"].endswith("test_telemetry.py")
    assert all(span.start_time <= span.end_time for span in spans)


async def test_a_failed_turn_has_the_error_on_its_spans(exported: Any) -> None:
    provider, exporter = exported
    await run(provider, FailureFacts(code="OVERLOADED", message="too busy"))
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert spans["invoke_agent a1"].attributes["error.type"] == "OVERLOADED"
    assert spans["chat m1"].attributes["error.type"] == "OVERLOADED"
    assert spans["invoke_agent a1"].status.is_ok is False


async def test_an_assembly_outside_of_any_turn_is_a_span_of_its_own_below_the_current_one(exported: Any) -> None:
    provider, exporter = exported
    async with Harness(plugins=[Working()], autoload=False) as harness:
        async with telemetry(harness, provider):
            with provider.get_tracer("app").start_as_current_span("outside"):
                await harness.assemble()
    assert "harness.assemble" in tree(exporter.get_finished_spans())["outside"]


async def test_the_same_spans_of_turns_come_from_a_log_afterwards() -> None:
    log = await recorded([Working()], answers(2))
    (turn,) = session_spans(log.info.id, log.events)
    assert turn.name == "invoke_agent s1"
    assert [step.name for step in turn.children] == ["step 1", "step 2"]
    assert [span.name for span in turn.children[0].children] == ["chat m1", "execute_tool work"]


def test_without_the_api_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    original = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return original(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HarnessError, match="opentelemetry-api"):
        Telemetry()
