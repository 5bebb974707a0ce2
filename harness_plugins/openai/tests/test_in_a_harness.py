"""The adapters in a running harness: turns with tools, retries, cancelling, keys that stay out of the session's log."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from harness_openai import DeepSeek, OpenAICompatible
from harness_retry import RetryRequests

from harness_core import Harness, ToolSchema, hookimpl
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, Usage
from harness_core.session import AssistantMessageLogged, FileStore, RequestRetry, TurnEnd, verify

pytestmark = pytest.mark.anyio

KEY = "sk-4f9a1c77e0d2"


class Files:
    """One section, and a tool that answers at once."""

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("files", "Read before you answer.", order=10)
        schema = ToolSchema("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
        ctx.tools.register(schema, lambda call: f"content of {call.arguments['path']}")


@asynccontextmanager
async def running(
    provider: str = "openai-compatible", *plugins: Any, sleep: Any = None, store: Any = None, **config: Any
) -> Any:
    """An agent on a harness with the adapter's plugin."""
    adapter = {"deepseek": DeepSeek, "openai-compatible": OpenAICompatible}[provider]
    extra = {name: value for name, value in (("sleep", sleep), ("store", store)) if value is not None}
    settings = AgentSettings(config=CallConfig(provider=provider, model="m1"), debug=True, **extra)
    async with Harness(autoload=False, agents=settings, plugins=[Files, *plugins]) as harness:
        await harness.install(adapter, config=config)
        yield await harness.create_agent("a1")


def call(call_id: str, path: str) -> list[dict[str, Any]]:
    function = {"name": "read", "arguments": json.dumps({"path": path})}
    return [{"index": 0, "id": call_id, "type": "function", "function": function}]


@pytest.mark.spec("TURN-02", "LLM-05")
async def test_a_turn_with_a_tool(http: Any) -> None:
    plays = [
        http.stream(
            http.sse(http.delta(reasoning_content="I must look."), http.delta("tool_calls", tool_calls=call("c1", "a")))
        ),
        http.stream(http.sse(http.delta(content="It says a."), http.delta("stop"), {"usage": {"prompt_tokens": 5}})),
    ]
    async with http.playing(*plays) as server:
        async with running(base_url=server.url) as agent:
            result = await agent.run("what is in a?")
        assert (result.reason, result.text) == ("completed", "It says a.")
        first, second = server.received
        assert second.body.startswith(first.body.removesuffix(b"]}"))
        assert [each["role"] for each in second.json["messages"]] == ["system", "user", "assistant", "tool"]
        assert second.json["messages"][2]["tool_calls"][0]["id"] == second.json["messages"][3]["tool_call_id"] == "c1"
        assert second.json["messages"][3]["content"] == "content of a"
        assert "reasoning_content" not in second.json["messages"][2]
        assert server.connections == 1
        usage = [each.data.usage for each in agent.session.events if isinstance(each.data, AssistantMessageLogged)]
        assert usage == [None, Usage(input_tokens=5)]


async def test_deepseek_gets_its_reasoning_back(http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    plays = [
        http.stream(
            http.sse(http.delta(reasoning_content="I must look."), http.delta("tool_calls", tool_calls=call("c1", "a")))
        ),
        http.stream(http.sse(*http.hello)),
    ]
    async with http.playing(*plays) as server:
        async with running("deepseek", base_url=server.url) as agent:
            await agent.run("what is in a?")
        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.received[1].json["messages"][2]["reasoning_content"] == "I must look."


@pytest.mark.spec("STEP-01", "STEP-02")
async def test_a_retry_sends_the_same_bytes_after_the_time_that_the_server_asked_for(http: Any) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    plays = [
        http.refusal("429 Too Many Requests", "{}", "retry-after: 3"),
        http.refusal("503 Service Unavailable", "{}"),
        http.Play(then="close"),
        http.stream(http.sse(*http.hello)),
    ]
    plugin = RetryRequests(chance=lambda: 0.0)
    async with http.playing(*plays) as server:
        async with running("openai-compatible", plugin, sleep=sleep, base_url=server.url) as agent:
            assert (await agent.run("hi")).text == "hello"
        assert slept == [3.0, 1.0, 2.0]
        assert len({each.body for each in server.received}) == 1
        announced = [each.data for each in agent.session.events if isinstance(each.data, RequestRetry)]
        codes = [(each.failure.code, each.failure.status) for each in announced]
        assert codes == [("RATE_LIMITED", 429), ("OVERLOADED", 503), ("CONNECTION_LOST", None)]


async def test_a_cut_after_output_ends_the_turn_with_the_facts(http: Any) -> None:
    play = http.stream(http.sse(http.delta(content="half an"), done=False), ended=False)
    play.then = "close"
    async with (
        http.playing(play) as server,
        running("openai-compatible", RetryRequests(), base_url=server.url) as agent,
    ):
        result = await agent.run("hi")
        assert (result.reason, result.failure.code, result.failure.output_started) == ("error", "STREAM_CUT", True)
        assert len(server.received) == 1


@pytest.mark.spec("CANCEL-02")
async def test_cancelling_a_turn_closes_the_connection_and_keeps_what_was_shown(http: Any) -> None:
    play = http.stream(http.sse(http.delta(content="half an"), done=False), ended=False)
    play.then = "hang"
    async with http.playing(play) as server, running(base_url=server.url) as agent:
        agent.followup("hi")
        with anyio.fail_after(5):
            await server.hanging.wait()
            await anyio.wait_all_tasks_blocked()
            agent.cancel()
            await server.gone.wait()
            await agent.when_idle()
        data = [each.data for each in agent.session.events]
        (message,) = [each for each in data if isinstance(each, AssistantMessageLogged)]
        assert (message.message.text, message.interrupted) == ("half an", True)
        assert isinstance(data[-1], TurnEnd)


async def test_a_missing_key_fails_the_turn_before_anything_is_sent(http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    async with http.playing() as server, running("deepseek", base_url=server.url) as agent:
        result = await agent.run("hi")
        assert result.reason == "error"
        assert "DEEPSEEK_API_KEY is not set" in result.failure.message
        assert server.received == []


async def test_the_key_is_nowhere_in_the_session_s_files(
    http: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    echo = f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}'
    plays = [http.stream(http.sse(*http.hello)), http.refusal("401 Unauthorized", echo, f"x-request-id: {KEY}")]
    store = FileStore(tmp_path / "sessions")
    async with http.playing(*plays) as server:
        async with running("deepseek", store=store, base_url=server.url) as agent:
            assert (await agent.run("hi")).reason == "completed"
            assert (await agent.run("hi")).failure.code == "AUTHENTICATION"
            verify(agent.session.info, agent.session.events)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"AUTHENTICATION" in written
    assert KEY.encode() not in written


@pytest.mark.spec("HDR-06")
async def test_a_plugin_that_is_taken_out_in_the_middle_of_an_answer_finishes_it(http: Any) -> None:
    async with http.playing(http.stream(http.sse(*http.hello))) as server:
        async with running() as agent:
            harness = agent.scope.harness
            (activation,) = [each for each in harness.activations if each.name == "openai-compatible"]
            await activation.aclose()
            current = await harness.install(OpenAICompatible, config={"base_url": server.url})

            class TakeOut:
                @hookimpl
                def session_event(self, session: Any, event: Any) -> None:
                    if event.type == "request/dispatch":
                        harness.tasks.start_soon(current.aclose)

            await harness.install(TakeOut())
            result = await agent.run("hi")
            assert (result.reason, result.text) == ("completed", "hello")
            assert "openai-compatible" not in harness.models.effective(harness.root)


async def test_one_plugin_serves_several_endpoints_under_names_of_their_own(http: Any) -> None:
    async with (
        http.playing(http.stream(http.sse(*http.hello))) as here,
        http.playing(http.stream(http.sse(*http.hello))) as there,
        Harness(autoload=False) as harness,
    ):
        for name, server in (("here", here), ("there", there)):
            await harness.install(OpenAICompatible, name=name, config={"base_url": server.url, "model": f"m-{name}"})
        for name in ("here", "there"):
            agent = await harness.create_agent(name, provider=name)
            assert (await agent.run("hi")).text == "hello"
        assert (here.received[0].json["model"], there.received[0].json["model"]) == ("m-here", "m-there")
        entries = harness.models.effective(harness.root)
        assert [info.provider for name in sorted(entries) for info in entries[name].adapter.describe()] == [
            "here",
            "there",
        ]


def test_both_plugins_are_entry_points() -> None:
    from harness_core.host.discovery import discover

    found = {source.name: source.distribution for source in discover()}
    assert found["deepseek"] == found["openai-compatible"] == "pluggy-harness-openai"
