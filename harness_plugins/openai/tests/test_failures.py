"""Every way in which a request fails, as facts."""

from __future__ import annotations

import socket
import sys
from typing import Any

import anyio
import attrs
import pytest
import trustme

from harness_core.models import Chunk, FailureFacts, Finish, TextDelta, Usage, UsageReport

pytestmark = [pytest.mark.anyio, pytest.mark.spec("LLM-04")]


def facts(chunks: list[Chunk]) -> FailureFacts:
    last = chunks[-1]
    assert isinstance(last, Finish)
    assert last.reason == "error"
    assert last.failure is not None
    return last.failure


def told(failure: FailureFacts) -> tuple[str, bool, bool]:
    return failure.code, failure.retryable, failure.output_started


# --- nobody answers ---------------------------------------------------------------------------------------------------


async def test_connection_refused(http: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets this port meanwhile
        adapter = http.adapter_for(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        failure = facts(await http.ask(adapter))
    assert told(failure) == ("CONNECTION_REFUSED", True, False)
    assert "127.0.0.1" in failure.message
    assert "refused" in failure.message
    await adapter.retire()


async def test_an_unknown_host(http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    adapter = http.adapter_for("http://models.invalid/v1")
    failure = facts(await http.ask(adapter))
    assert told(failure) == ("DNS", True, False)
    assert "Name or service not known" in failure.message
    await adapter.retire()


@attrs.frozen
class Certificates:
    authority: trustme.CA
    server: Any


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    import ssl

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return Certificates(authority, context)


def over_tls(certificates: Certificates) -> Any:
    from anyio.streams.tls import TLSListener

    async def silent(_: BaseException, stream: Any) -> None:
        """Handshakes that the client breaks off are what these tests are about."""
        await anyio.aclose_forcefully(stream)

    class Listener(TLSListener):
        handle_handshake_error = staticmethod(silent)  # type: ignore[assignment]

    return lambda listener: Listener(listener, certificates.server, standard_compatible=False)


async def test_an_unknown_certificate_authority(http: Any, certificates: Certificates) -> None:
    async with http.playing(wrap=over_tls(certificates)) as server:
        adapter = http.adapter_for(server.url.replace("http:", "https:"))
        failure = facts(await http.ask(adapter))
        await adapter.retire()
    assert told(failure) == ("TLS", False, False)
    assert "ca_bundle" in failure.message


async def test_a_bundle_with_the_authority_makes_it_known(http: Any, certificates: Certificates, tmp_path: Any) -> None:
    bundle = tmp_path / "ca.pem"
    certificates.authority.cert_pem.write_to_path(str(bundle))
    async with http.playing(http.stream(http.sse(*http.hello)), wrap=over_tls(certificates)) as server:
        adapter = http.adapter_for(server.url.replace("http:", "https:"), ca_bundle=str(bundle))
        assert (await http.ask(adapter))[-1] == Finish("stop")
        await adapter.retire()


async def test_the_environment_s_bundle_counts_as_httpx_says(
    http: Any, certificates: Certificates, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    certificates.authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    async with http.playing(http.stream(http.sse(*http.hello)), wrap=over_tls(certificates)) as server:
        adapter = http.adapter_for(server.url.replace("http:", "https:"))
        assert (await http.ask(adapter))[-1] == Finish("stop")
        await adapter.retire()


async def test_a_bundle_that_holds_no_certificates(http: Any, tmp_path: Any) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("nothing of the kind")
    adapter = http.adapter_for("https://127.0.0.1:9/v1", ca_bundle=str(bundle))
    assert told(facts(await http.ask(adapter))) == ("TLS", False, False)


async def test_a_server_that_speaks_no_tls(http: Any) -> None:
    async with http.playing(greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        adapter = http.adapter_for(server.url.replace("http:", "https:"))
        assert told(facts(await http.ask(adapter))) == ("TLS", False, False)
        await adapter.retire()


# --- silence ----------------------------------------------------------------------------------------------------------


async def test_connecting_takes_too_long(http: Any) -> None:
    """A listener whose queue is full answers no SYN."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        try:
            adapter = http.adapter_for(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", connect_timeout=0.05)
            assert told(facts(await http.ask(adapter))) == ("CONNECT_TIMEOUT", True, False)
            await adapter.retire()
        finally:
            for each in waiting:
                each.close()


async def test_the_first_byte_takes_too_long(http: Any) -> None:
    async with http.playing(http.Play(then="hang")) as server:
        adapter = http.adapter_for(server.url, first_byte_timeout=0.05, stream_timeout=60.0)
        with anyio.fail_after(20):
            failure = facts(await http.ask(adapter))
            await server.gone.wait()
        await adapter.retire()
    assert told(failure) == ("FIRST_BYTE_TIMEOUT", True, False)
    assert "0.05 s" in failure.message


@pytest.mark.parametrize("begun", [False, True], ids=["after the headers", "after some output"])
async def test_the_stream_stalls(http: Any, begun: bool) -> None:
    play = http.stream(http.sse(http.delta(content="so"), done=False) if begun else b"", ended=False)
    play.then = "hang"
    async with http.playing(play) as server:
        adapter = http.adapter_for(server.url, first_byte_timeout=60.0, stream_timeout=0.05)
        with anyio.fail_after(20):
            chunks = await http.ask(adapter)
            await server.gone.wait()
        await adapter.retire()
    assert chunks[:-1] == ([TextDelta("so")] if begun else [])
    assert told(facts(chunks)) == ("STREAM_TIMEOUT", True, begun)
    assert "0.05 s" in facts(chunks).message


async def test_comments_keep_a_stream_alive(http: Any) -> None:
    """A scheduler that makes one wait says so; only silence is a failure."""
    comments = [b": keep-alive\n\n"] * 20
    found = await http.answer_of(http.stream(*comments, http.sse(*http.hello)), stream_timeout=5.0)
    assert found[-1] == Finish("stop")


# --- refusals ---------------------------------------------------------------------------------------------------------

ERROR = '{"error": {"message": "%s", "type": "%s", "code": %s}}'


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        ("400 Bad Request", ERROR % ("temperature is too high", "invalid_request_error", "null"), "BAD_REQUEST", False),
        ("422 Unprocessable Entity", '{"detail": "messages[1]: temperature is too high"}', "BAD_REQUEST", False),
        ("401 Unauthorized", ERROR % ("temperature is too high", "authentication_error", "null"), "AUTHENTICATION", False),
        ("402 Payment Required", ERROR % ("temperature is too high", "x", '"y"'), "PAYMENT_REQUIRED", False),
        ("403 Forbidden", '"temperature is too high"', "FORBIDDEN", False),
        ("404 Not Found", ERROR % ("no model temperature is too high", "x", "404"), "MODEL_NOT_FOUND", False),
        ("404 Not Found", "404 page temperature is too high not found", "NOT_FOUND", False),
        ("413 Content Too Large", "temperature is too high", "REQUEST_TOO_LARGE", False),
        ("429 Too Many Requests", ERROR % ("temperature is too high", "rate_limit", "null"), "RATE_LIMITED", True),
        ("429 Too Many Requests", ERROR % ("temperature is too high", "insufficient_quota", "null"), "PAYMENT_REQUIRED", False),
        ("500 Internal Server Error", '{"error": "temperature is too high"}', "SERVER_ERROR", True),
        ("501 Not Implemented", "temperature is too high", "SERVER_ERROR", False),
        ("503 Service Unavailable", '{"message": "temperature is too high"}', "OVERLOADED", True),
        ("504 Gateway Timeout", "temperature is too high", "SERVER_ERROR", True),
        ("307 Temporary Redirect", "temperature is too high", "UNEXPECTED_STATUS", False),
    ],
)  # fmt: skip
async def test_refusals(http: Any, status: str, body: str, code: str, retryable: bool) -> None:
    failure = facts(await http.answer_of(http.refusal(status, body, "x-request-id: r-7")))
    assert told(failure) == (code, retryable, False)
    assert failure.status == int(status.split()[0])
    assert failure.request_id == "r-7"
    assert "temperature is too high" in failure.message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("400 Bad Request", ERROR % ("too long", "invalid_request_error", '"context_length_exceeded"')),
        ("400 Bad Request", ERROR % ("This model's maximum context length is 131072 tokens.", "x", "null")),
        ("400 Bad Request", '{"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}'),
        ("413 Content Too Large", ERROR % ("This model's maximum context length is 131072 tokens.", "x", "null")),
    ],
)
async def test_context_overflow(http: Any, status: str, body: str) -> None:
    assert told(facts(await http.answer_of(http.refusal(status, body)))) == ("CONTEXT_OVERFLOW", False, False)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["retry-after: 7"], 7.0),
        (["retry-after: 1.5"], 1.5),
        (["retry-after: 7", "retry-after-ms: 250"], 0.25),
        (["date: Tue, 14 Nov 2023 10:00:00 GMT", "retry-after: Tue, 14 Nov 2023 10:00:30 GMT"], 30.0),
        (["retry-after: Tue, 14 Nov 2023 22:13:25 GMT"], 5.0),  # without a date the clock counts: 22:13:20
        (["retry-after: Tue, 14 Nov 2023 20:00:00 GMT"], 0.0),
        (["retry-after: -3"], 0.0),
        (["retry-after: nan"], None),
        (["retry-after: soon"], None),
        ([], None),
    ],
)
async def test_when_to_come_back(http: Any, headers: list[str], seconds: float | None) -> None:
    failure = facts(await http.answer_of(http.refusal("429 Too Many Requests", "{}", *headers)))
    assert failure.retry_after == seconds


async def test_a_page_of_html_is_not_repeated(http: Any) -> None:
    page = "<html><body>" + "nginx " * 1000
    failure = facts(await http.answer_of(http.refusal("502 Bad Gateway", page, kind="text/html")))
    assert told(failure) == ("SERVER_ERROR", True, False)
    assert failure.message == f"test ({failure.message.split('(')[1].split(')')[0]}): answered 502 Bad Gateway."


async def test_an_endless_error_is_cut_off(http: Any) -> None:
    piece = b"x" * 10_000
    play = http.Play(pieces=[http.head("500 Oops"), *[http.chunk(piece)] * 12], then="hang")
    with anyio.fail_after(5):  # which is sooner than such a body is given up
        failure = facts(await http.answer_of(play))
    assert failure.code == "SERVER_ERROR"
    assert len(failure.message) < 3_000


# --- answers that are none --------------------------------------------------------------------------------------------


async def test_an_answer_that_is_no_stream(http: Any) -> None:
    failure = facts(await http.answer_of(http.refusal("200 OK", '{"choices": []}')))
    assert told(failure) == ("NOT_A_STREAM", False, False)
    assert "application/json" in failure.message


async def test_an_error_in_place_of_a_stream(http: Any) -> None:
    failure = facts(await http.answer_of(http.refusal("200 OK", ERROR % ("busy", "x", "503"))))
    assert (told(failure), failure.status) == (("OVERLOADED", True, False), 503)


async def test_an_error_inside_the_stream(http: Any) -> None:
    body = http.sse(http.delta(content="so"), {"error": {"message": "out of memory", "code": 500}})
    failure = facts(await http.answer_of(http.stream(body)))
    assert told(failure) == ("SERVER_ERROR", True, True)
    assert "out of memory" in failure.message


@pytest.mark.parametrize(
    "event",
    [
        "{not json",
        "[]",
        "17",
        '{"choices": 3}',
        '{"choices": [3]}',
        '{"choices": [{"delta": 3}]}',
        '{"choices": [{"delta": {"content": 3}}]}',
        '{"choices": [{"delta": {"reasoning_content": {}}}]}',
        '{"choices": [{"delta": {"tool_calls": {}}}]}'.replace("{}", '{"x": 1}'),
        '{"choices": [{"delta": {"tool_calls": [3]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"function": 3}]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"function": {"name": 3}}]}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": 3}}]}}]}',
        '{"choices": [{"delta": {}, "finish_reason": 3}]}',
        "[" * 100_000,
    ],
)
async def test_malformed_events(http: Any, event: str) -> None:
    failure = facts(await http.answer_of(http.stream(http.sse(http.delta(content="so"), event))))
    assert told(failure) == ("MALFORMED_STREAM", True, True)
    assert event[:10] in failure.message


async def test_lines_that_are_no_events_make_an_empty_stream(http: Any) -> None:
    assert told(facts(await http.answer_of(http.stream(b"what is this\n\n{}\n\n")))) == ("EMPTY_STREAM", True, False)


@pytest.mark.parametrize("done", [True, False])
async def test_an_empty_stream(http: Any, done: bool) -> None:
    assert told(facts(await http.answer_of(http.stream(http.sse(done=done))))) == ("EMPTY_STREAM", True, False)


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_stream_that_is_cut(http: Any, then: str) -> None:
    body = http.sse(http.delta(content="so"), {"usage": {"prompt_tokens": 5}}, done=False)
    play = http.stream(body, ended=False)
    play.then = then
    chunks = await http.answer_of(play)
    assert told(facts(chunks)) == ("STREAM_CUT", True, True)
    assert chunks[:2] == [TextDelta("so"), UsageReport(Usage(input_tokens=5))]


async def test_a_stream_that_ends_properly_and_too_early(http: Any) -> None:
    chunks = await http.answer_of(http.stream(http.sse(http.delta(content="so"), done=False)))
    assert told(facts(chunks)) == ("STREAM_CUT", True, True)


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_connection_that_ends_before_the_answer(http: Any, then: str) -> None:
    assert told(facts(await http.answer_of(http.Play(then=then)))) == ("CONNECTION_LOST", True, False)


async def test_an_answer_that_is_no_http(http: Any) -> None:
    play = http.Play(pieces=[b"SSH-2.0-server\r\n\r\n"], then="close")
    assert told(facts(await http.answer_of(play))) == ("CONNECTION_LOST", True, False)


async def test_a_finish_reason_that_nobody_knows(http: Any) -> None:
    failure = facts(await http.answer_of(http.stream(http.sse(http.delta(content="so"), http.delta("tired")))))
    assert told(failure) == ("UNKNOWN_FINISH_REASON", False, True)
    assert "'tired'" in failure.message


@pytest.mark.parametrize(
    ("reason", "code", "retryable"),
    [("content_filter", "CONTENT_FILTERED", False), ("insufficient_system_resource", "OVERLOADED", True)],
)
async def test_finish_reasons_that_are_failures(http: Any, reason: str, code: str, retryable: bool) -> None:
    assert told(facts(await http.answer_of(http.stream(http.sse(http.delta(reason)))))) == (code, retryable, False)


async def test_a_tool_call_without_a_name(http: Any) -> None:
    call = {"index": 0, "id": "c1", "function": {"arguments": "{}"}}
    failure = facts(
        await http.answer_of(http.stream(http.sse(http.delta(tool_calls=[call]), http.delta("tool_calls"))))
    )
    assert told(failure) == ("MALFORMED_STREAM", True, False)


# --- proxies ----------------------------------------------------------------------------------------------------------


async def test_a_proxy_from_the_configuration(http: Any) -> None:
    async with http.playing(http.stream(http.sse(*http.hello))) as proxy:
        adapter = http.adapter_for("http://models.invalid/v1", proxy=f"http://u:p@127.0.0.1:{proxy.port}")
        assert (await http.ask(adapter))[-1] == Finish("stop")
        await adapter.retire()
        assert proxy.received[0].line == "POST http://models.invalid/v1/chat/completions HTTP/1.1"
        assert "proxy-authorization" in proxy.received[0].headers


async def test_the_environment_s_proxies_count_as_httpx_says(http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with http.playing(*[http.stream(http.sse(*http.hello))] * 2) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for url in ("http://models.invalid/v1", server.url):
            adapter = http.adapter_for(url)
            assert (await http.ask(adapter))[-1] == Finish("stop")
            await adapter.retire()
        assert [each.line.split()[1] for each in server.received] == [
            "http://models.invalid/v1/chat/completions",
            "/v1/chat/completions",
        ]


async def test_a_proxy_that_cannot_reach_the_server(http: Any) -> None:
    async with http.playing(http.refusal("502 Bad Gateway", "")) as proxy:
        adapter = http.adapter_for("https://models.invalid/v1", proxy=f"http://127.0.0.1:{proxy.port}")
        assert told(facts(await http.ask(adapter))) == ("CONNECTION_FAILED", True, False)
        await adapter.retire()


@pytest.mark.parametrize("value", ["what://u:secret@host:1", "socks5://u:secret@127.0.0.1:9"])
async def test_a_proxy_of_the_environment_that_cannot_be_used(
    http: Any, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)  # as where it is not installed
    monkeypatch.setenv("HTTP_PROXY", value)
    failure = facts(await http.ask(http.adapter_for("http://models.invalid/v1")))
    assert told(failure) == ("PROXY", False, False)
    assert "secret" not in failure.message


async def test_certificates_of_the_environment_that_are_not_there(
    http: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    failure = facts(await http.ask(http.adapter_for("https://127.0.0.1:9/v1")))
    assert told(failure) == ("TLS", False, False)
    assert "SSL_CERT_FILE" in failure.message


async def test_a_proxy_that_refuses(http: Any) -> None:
    async with http.playing(http.refusal("407 Proxy Authentication Required", "")) as proxy:
        adapter = http.adapter_for("https://models.invalid/v1", proxy=f"http://u:secret@127.0.0.1:{proxy.port}")
        failure = facts(await http.ask(adapter))
        await adapter.retire()
    assert told(failure) == ("PROXY", False, False)
    assert "407" in failure.message
    assert "secret" not in failure.message
