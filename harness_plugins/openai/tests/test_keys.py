"""Keys: where they come from, and that they show nowhere."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest
from harness_openai import CompatibleEndpoint, DeepSeekEndpoint, ModelRouteError
from harness_openai.keys import Key, KeySource

from harness_core.host.config import structure_config
from harness_core.models import CallConfig

KEY = "sk-4f9a1c77e0d2"


@pytest.mark.anyio
async def test_the_key_is_sent_as_a_bearer_s(http: Any) -> None:
    async with http.playing(http.stream(http.sse(*http.hello)), http.stream(http.sse(*http.hello))) as server:
        adapter = http.adapter_for(server.url, environ={"THE_KEY": f" {KEY}\n"}, api_key_env="THE_KEY")
        await http.ask(adapter)
        without = http.adapter_for(server.url, environ={"THE_KEY": KEY, "OPENAI_API_KEY": KEY})
        await http.ask(without)
        await adapter.retire()
        await without.retire()
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in server.received[1].headers, "no key goes to a server that none was named for"


@pytest.mark.anyio
async def test_a_file_is_read_for_each_request(http: Any, tmp_path: Any) -> None:
    file = tmp_path / "key"
    async with http.playing(*[http.stream(http.sse(*http.hello))] * 2) as server:
        adapter = http.adapter_for(server.url, api_key_file=str(file), environ={"THE_KEY": "x"}, api_key_env="THE_KEY")
        for key in ("old", "new"):
            file.write_text(f"{key}\n")
            await http.ask(adapter)
        await adapter.retire()
    assert [each.headers["authorization"] for each in server.received] == ["Bearer old", "Bearer new"]


@pytest.mark.anyio
async def test_a_key_that_is_gone_when_it_is_needed(http: Any, tmp_path: Any) -> None:
    adapter = http.adapter_for("http://127.0.0.1:9/v1", api_key_file=str(tmp_path / "key"))
    (last,) = await http.ask(adapter)
    assert last.failure.code == "NO_KEY"
    assert not last.failure.retryable


# --- nowhere ----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_key_shows_in_no_log_no_fact_and_no_repr(http: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Servers that repeat it included: in a refusal, in headers, in the stream's errors, in what is no stream at all."""
    echo = f'{{"error": {{"message": "Incorrect API key provided: {KEY}", "code": "{KEY}"}}}}'
    plays = [
        http.stream(http.sse(*http.hello)),
        http.refusal("401 Unauthorized", echo, f"x-request-id: {KEY}"),
        http.refusal("200 OK", f"Bearer {KEY}", kind="text/plain"),
        http.stream(http.sse({"error": f"Bearer {KEY} is not welcome"})),
        http.stream(http.sse(f"{KEY} is no JSON")),
        http.stream(http.sse(http.delta(KEY))),
        http.Play(pieces=[f"HTTP/1.1 {KEY}\r\n\r\n".encode()], then="close"),
    ]
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name)
    async with http.playing(*plays) as server:
        adapter = http.adapter_for(server.url, environ={"THE_KEY": KEY}, api_key_env="THE_KEY")
        ends = [(await http.ask(adapter))[-1] for _ in plays]
        shown = [repr(adapter), repr(adapter.endpoint), repr(adapter.describe()), repr(ends), caplog.text]
        await adapter.retire()
    assert [each.failure.code if each.failure else "" for each in ends] == [
        "",
        "AUTHENTICATION",
        "NOT_A_STREAM",
        "SERVER_ERROR",
        "MALFORMED_STREAM",
        "UNKNOWN_FINISH_REASON",
        "CONNECTION_LOST",
    ]
    assert "HTTP Request" in caplog.text
    for text in shown:
        assert KEY not in text


@pytest.mark.anyio
async def test_a_401_says_where_the_key_came_from(http: Any) -> None:
    async with http.playing(*[http.refusal("401 Unauthorized", "{}")] * 2) as server:
        named = http.adapter_for(server.url, environ={"THE_KEY": KEY}, api_key_env="THE_KEY")
        (with_key,) = await http.ask(named)
        nameless = http.adapter_for(server.url)
        (without,) = await http.ask(nameless)
        await named.retire()
        await nameless.retire()
    assert "the environment variable THE_KEY" in with_key.failure.message
    assert "No key was sent" in without.failure.message


def test_a_key_s_own_texts() -> None:
    assert repr(Key(KEY)) == str(Key(KEY)) == "<Key>"


@pytest.mark.parametrize("value", [f"{KEY} and more", f"{KEY}\nX-Evil: 1", "schlüssel-4f9a1c77e0d2"])
def test_what_cannot_be_a_key_is_refused_unseen(value: str) -> None:
    with pytest.raises(ModelRouteError) as caught:
        KeySource(None, "THE_KEY").read({"THE_KEY": value})
    told = "".join(traceback.format_exception(caught.value))
    assert "THE_KEY" in told
    assert "4f9a1c77e0d2" not in told


@pytest.mark.parametrize(
    "data",
    [
        {"api_key_env": KEY},
        {"api_key_env": "sk4f9a1c77e0d2"},
        {"base_url": f"https://user:{KEY}@host/v1"},
        {"base_url": f"https://host/v1?key={KEY}"},
        {"proxy": f"what://user:{KEY}@proxy:3128"},
        {"headers": {"Authorization": f"Bearer {KEY}"}},
        {"headers": {"x-api-key": KEY}},
        {"headers": {"X-Note": f"{KEY}\r\nX-Evil: 1"}},
        {"api_key": KEY},
        {"max_tokens": KEY},
    ],
)
def test_a_key_in_the_wrong_place_is_refused_unseen(data: dict[str, Any]) -> None:
    problems = structure_config(data, CompatibleEndpoint)
    assert isinstance(problems, list), "the configuration was accepted"
    assert problems[0].path.partition(".")[0] == next(iter(data))
    assert "4f9a1c77e0d2" not in str(problems)


def test_a_proxy_s_password_is_not_in_the_configuration_s_repr() -> None:
    assert "secret" not in repr(CompatibleEndpoint(proxy="http://u:secret@proxy:3128"))


# --- what is missing --------------------------------------------------------------------------------------------------


def test_what_is_missing_is_said_by_name_before_any_request(http: Any, tmp_path: Any) -> None:
    adapter = http.adapter_for(None, api_key_env="THE_KEY", ca_bundle=str(tmp_path / "none.pem"))
    (info,) = adapter.describe()
    assert info.missing == (
        "base_url is not set",
        "the environment variable THE_KEY is not set",
        f"there is no file '{tmp_path}/none.pem', which ca_bundle names",
    )
    with pytest.raises(ModelRouteError) as caught:
        adapter.resolve(CallConfig(provider="test", model="m"))
    assert caught.value.names == ("base_url", "api_key_env", "ca_bundle")
    assert all(each in str(caught.value) for each in info.missing)


@pytest.mark.parametrize("content", [None, "", "  \n", b"\xff\xfe"])
def test_a_key_file_that_holds_none(http: Any, tmp_path: Any, content: str | bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (info,) = http.adapter_for("http://x/v1", api_key_file=str(file)).describe()
    assert len(info.missing) == 1
    assert str(file) in info.missing[0]


def test_deepseek_s_settings() -> None:
    endpoint = DeepSeekEndpoint()
    assert (endpoint.base_url, endpoint.api_key_env) == ("https://api.deepseek.com", "DEEPSEEK_API_KEY")


@pytest.mark.spec("HDR-05")
def test_the_endpoint_s_own_values_are_marked_as_supplied_and_explicit_ones_win(http: Any) -> None:
    adapter = http.adapter_for(
        "http://x/v1", model="own", temperature=0.5, max_tokens=9, effort="low", context_window=4096
    )
    resolved = adapter.resolve(CallConfig(provider="test", temperature=0.0))
    assert resolved.config == CallConfig(provider="test", model="own", temperature=0.0, max_tokens=9, effort="low")
    assert resolved.supplied == {"model", "max_tokens", "effort"}
    assert resolved.context_window == 4096


@pytest.mark.parametrize(
    "data",
    [
        {"base_url": "ftp://x"},
        {"base_url": "https://"},
        {"base_url": "host/v1"},
        {"stream_timeout": 0},
        {"connect_timeout": -1.0},
        {"first_byte_timeout": float("nan")},
        {"max_tokens": 0},
        {"max_tokens_field": "tokens"},
        {"headers": {"content-type": "x"}},
    ],
)
def test_settings_that_cannot_be(data: dict[str, Any]) -> None:
    problems = structure_config(data, CompatibleEndpoint)
    assert isinstance(problems, list)
    assert problems[0].path == next(iter(data))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1", "https://host", "http://[::1]:80/v1/", "https://a-b.example/x/y"]
)
def test_addresses(url: str) -> None:
    assert CompatibleEndpoint(base_url=url).base_url == url
