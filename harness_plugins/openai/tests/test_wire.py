"""What is sent, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness_openai import DEEPSEEK, OPENAI, ChatCompletions, CompatibleEndpoint, ModelRouteError
from hypothesis import given, strategies as st

from harness_core.models import (
    AssistantMessage,
    CallConfig,
    ModelRequest,
    ReasoningBlock,
    RequestHeader,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
    message_from_json,
)

READ = ToolSchema(
    "read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)
CALL = AssistantMessage(
    content=(ReasoningBlock("I must look."), TextBlock("Let me see."), ToolCallBlock("c1", "read", '{"path": "a"}'))
)
RESULT = ToolResultMessage(call_id="c1", name="read", content="grün")


@pytest.mark.spec("LLM-02")
def test_a_whole_body(http: Any) -> None:
    config = CallConfig(
        provider="test",
        model="m1",
        temperature=1,
        top_p=0.5,
        max_tokens=100,
        effort="high",
        stop=("\n\n", "END"),
        seed=7,
        extra={"top_k": 3, "b": {"z": 1, "a": None}},
    )
    asked = http.request(
        "look", CALL, RESULT, "thanks", tools=[READ, ToolSchema("now")], system="Be brief.", config=config
    )
    assert http.adapter_for("http://x/v1").body(asked).decode() == (
        '{"model":"m1","stream":true,"stream_options":{"include_usage":true},"temperature":1.0,"top_p":0.5,'
        '"max_tokens":100,"reasoning_effort":"high","stop":["\\n\\n","END"],"seed":7,"top_k":3,"b":{"z":1,"a":null},'
        '"tools":[{"type":"function","function":{"name":"read","description":"Read a file.","parameters":'
        '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},'
        '{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],'
        '"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"look"},'
        '{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"c1","type":"function","function":'
        '{"name":"read","arguments":"{\\"path\\": \\"a\\"}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"grün"},{"role":"user","content":"thanks"}]}'
    )


@pytest.mark.spec("LLM-02")
def test_what_is_not_there_is_absent(http: Any) -> None:
    assert http.adapter_for("http://x/v1").body(http.request("hi")) == (
        b'{"model":"m1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}'
    )


@pytest.mark.anyio
@pytest.mark.spec("LLM-02")
async def test_the_request_on_the_wire(http: Any) -> None:
    async with http.playing(http.stream(http.sse(*http.hello))) as server:
        adapter = http.adapter_for(server.url, headers={"X-Title": "demo"})
        asked = http.request("hi", system="Be brief.")
        await http.ask(adapter, asked)
        await adapter.retire()
    (received,) = server.received
    assert received.line == "POST /v1/chat/completions HTTP/1.1"
    assert received.body == adapter.body(asked)
    shown = {name: value for name, value in received.headers.items() if name not in ("host", "connection")}
    assert shown == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "cache-control": "no-store",
        "user-agent": "pluggy-harness-openai",
        "x-title": "demo",
        "content-length": str(len(received.body)),
    }


def body(http: Any, *messages: Any, dialect: Any = OPENAI, **config: Any) -> dict[str, Any]:
    asked = http.request(*messages, config=CallConfig(provider="test", model="m1", **config))
    value: dict[str, Any] = json.loads(http.adapter_for("http://x/v1", dialect).body(asked))
    return value


class TestReasoning:
    def test_it_stays_away_from_those_who_know_no_such_field(self, http: Any) -> None:
        (message,) = body(http, CALL)["messages"]
        assert "reasoning_content" not in message

    def test_deepseek_gets_it_back_beside_calls_and_beside_answers(self, http: Any) -> None:
        answer = AssistantMessage(content=(ReasoningBlock("so"), ReasoningBlock(" it is"), TextBlock("42")))
        first, second = body(http, CALL, answer, dialect=DEEPSEEK)["messages"]
        assert (first["reasoning_content"], second["reasoning_content"]) == ("I must look.", "so it is")

    def test_deepseek_gets_the_field_of_a_call_that_nothing_was_thought_before(self, http: Any) -> None:
        call = AssistantMessage(content=(ToolCallBlock("c1", "read", "{}"),))
        answer = AssistantMessage(content="42")
        first, second = body(http, call, answer, dialect=DEEPSEEK)["messages"]
        assert first["reasoning_content"] == ""
        assert "reasoning_content" not in second

    def test_an_answer_of_nothing_else_is_left_out_where_it_is_not_wanted(self, http: Any) -> None:
        thought = AssistantMessage(content=(ReasoningBlock("hm"),))
        assert [each["role"] for each in body(http, "a", thought, "b")["messages"]] == ["user", "user"]
        assert len(body(http, "a", thought, "b", dialect=DEEPSEEK)["messages"]) == 3

    @pytest.mark.parametrize(
        ("effort", "fields"),
        [("high", {"reasoning_effort": "high"}), ("none", {"thinking": {"type": "disabled"}})],
    )
    def test_deepseek_s_effort(self, http: Any, effort: str, fields: dict[str, Any]) -> None:
        found = body(http, "a", dialect=DEEPSEEK, effort=effort)
        assert {name: found.get(name) for name in ("reasoning_effort", "thinking") if name in found} == fields


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', {"unreadable_arguments": '{"a": '}),
        ("[1]", {"unreadable_arguments": "[1]"}),
    ],
)
def test_arguments_of_earlier_calls_are_objects(http: Any, written: str, sent: dict[str, Any]) -> None:
    call = AssistantMessage(content=(ToolCallBlock("c1", "read", written),))
    (message,) = body(http, call)["messages"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == sent


@pytest.mark.parametrize(
    "name", ["model", "messages", "tools", "stream", "stream_options", "n", "temperature", "max_tokens"]
)
def test_extra_cannot_replace_what_is_the_adapter_s(http: Any, name: str) -> None:
    adapter = http.adapter_for("http://x/v1")
    with pytest.raises(ModelRouteError, match=name) as caught:
        adapter.resolve(CallConfig(provider="test", model="m", extra={name: 1}))
    assert caught.value.names == (name,)


def test_the_limit_of_output_tokens_has_two_names(http: Any) -> None:
    from attrs import evolve

    found = body(http, "a", dialect=evolve(OPENAI, max_tokens_field="max_completion_tokens"), max_tokens=5)
    assert found["max_completion_tokens"] == 5
    assert "max_tokens" not in found


# --- properties -------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
blocks = (
    st.builds(TextBlock, texts)
    | st.builds(ReasoningBlock, texts)
    | st.builds(ToolCallBlock, st.text("abc", min_size=1), st.text("xyz", min_size=1), texts)
)
messages = (
    st.builds(UserMessage, id=st.just("m"), content=texts)
    | st.builds(AssistantMessage, content=st.lists(blocks, max_size=3).map(tuple))
    | st.builds(ToolResultMessage, call_id=st.text("abc"), name=st.just("read"), content=texts)
)
headers = st.builds(
    RequestHeader,
    config=st.builds(
        CallConfig,
        provider=st.just("p"),
        model=texts,
        temperature=st.none() | st.floats(0, 2),
        effort=st.none() | st.sampled_from(["none", "high"]),
        stop=st.none() | st.lists(texts, max_size=2),
        extra=st.dictionaries(st.sampled_from(["top_k", "user", "x"]), st.integers() | texts, max_size=2),
    ),
    system=texts,
    tools=st.lists(st.builds(ToolSchema, st.text("abc", min_size=1), texts), max_size=2),
)


@pytest.mark.spec("LLM-05")
@pytest.mark.parametrize("dialect", [OPENAI, DEEPSEEK], ids=["openai", "deepseek"])
@given(header=headers, earlier=st.lists(messages, max_size=5), later=st.lists(messages, max_size=3))
def test_a_longer_request_begins_with_the_bytes_of_the_shorter(
    http: Any, dialect: Any, header: RequestHeader, earlier: list[Any], later: list[Any]
) -> None:
    adapter = http.adapter_for("http://x/v1", dialect)
    short = adapter.body(ModelRequest(header=header, messages=earlier, session_id="s"))
    long = adapter.body(ModelRequest(header=header, messages=[*earlier, *later], session_id="s"))
    assert long.startswith(short.removesuffix(b"]}"))
    json.loads(long)


@pytest.mark.spec("LLM-05")
@pytest.mark.parametrize("dialect", [OPENAI, DEEPSEEK], ids=["openai", "deepseek"])
@given(header=headers, history=st.lists(messages, max_size=5))
def test_equal_requests_give_equal_bytes_whether_or_not_they_are_the_same_records(
    http: Any, dialect: Any, header: RequestHeader, history: list[Any]
) -> None:
    adapter = http.adapter_for("http://x/v1", dialect)
    again = [message_from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    tools = [ToolSchema(tool.name, tool.description, dict(tool.parameters)) for tool in header.tools]
    copy = RequestHeader(
        config=CallConfig.from_json(json.loads(json.dumps(header.config.to_json()))), system=header.system, tools=tools
    )
    first = adapter.body(ModelRequest(header=header, messages=history, session_id="s"))
    assert first == adapter.body(ModelRequest(header=copy, messages=again, session_id="other"))


def test_a_preview_is_what_would_be_sent_without_key_and_configured_headers() -> None:
    endpoint = CompatibleEndpoint(
        base_url="http://host/v1/", api_key_env="SOME_KEY", headers={"X-Room": "not to be shown"}
    )
    adapter = ChatCompletions("p", endpoint, OPENAI, environ={"SOME_KEY": "sk-secret"})
    request = ModelRequest(
        header=RequestHeader(config=CallConfig(provider="p", model="m"), system="s"),
        messages=[UserMessage(id="1", content="hi")],
        session_id="x",
    )
    preview = adapter.preview(request)
    assert preview.url == "http://host/v1/chat/completions"
    assert preview.body == adapter.body(request)
    assert preview.secrets == {"X-Room": "$X_ROOM", "authorization": "Bearer $SOME_KEY"}
    assert "sk-secret" not in repr(preview)
    assert "not to be shown" not in repr(preview)
