"""What went wrong with a request, as facts (LLM-04): from exceptions, from refusals, and from error objects.

Every text that ends up in the facts passes `Reporter`, which takes the key out of it and keeps it short.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import attrs
import httpx

from harness_core.models import FailureFacts
from harness_openai import codes
from harness_openai.answer import MalformedEventError, ServiceError
from harness_openai.connection import SilenceError, UnusableSettingError
from harness_openai.keys import Key
from harness_openai.surrogates import whole

__all__ = ["Reporter"]

_LONGEST = 2_000
"""Characters of a server's message that are kept: enough for a validation error, too little for a page of HTML."""

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-ds-trace-id", "apim-request-id", "cf-ray")

_STATUS = {
    400: codes.BAD_REQUEST,
    401: codes.AUTHENTICATION,
    402: codes.PAYMENT_REQUIRED,
    403: codes.FORBIDDEN,
    408: codes.FIRST_BYTE_TIMEOUT,
    413: codes.REQUEST_TOO_LARGE,
    422: codes.BAD_REQUEST,
    429: codes.RATE_LIMITED,
    503: codes.OVERLOADED,
    529: codes.OVERLOADED,
}
_PERMANENT_5XX = (501, 505)

_OVERFLOW = re.compile(
    r"context.length.exceeded|exceed.context.size|maximum context length|context window|available context size", re.I
)
_QUOTA = re.compile(r"insufficient.(quota|balance)", re.I)

_ADVICE = {
    codes.AUTHENTICATION: "Check the key.",
    codes.PAYMENT_REQUIRED: "The account has no credit left.",
    codes.NOT_FOUND: "Check base_url: '/chat/completions' is appended to it.",
    codes.MODEL_NOT_FOUND: "Check the model's name.",
    codes.CONTEXT_OVERFLOW: "The conversation has grown beyond the model's context.",
    codes.TLS: "Check ca_bundle (or SSL_CERT_FILE) and the address.",
    codes.CONNECTION_REFUSED: "Is the server running?",
    codes.DNS: "Check base_url and the network.",
}


@attrs.frozen(kw_only=True)
class Reporter:
    """Makes the facts of one request's failures.

    ``provider`` and ``address`` say who was asked; ``key_label`` where the key came from; ``key`` is what must not show;
    ``stream_timeout`` is the limit that silence ran into; ``now`` the wall clock, for servers that say when to come back rather than how long to wait.
    """

    provider: str
    address: str
    key_label: str = ""
    key: Key | None = None
    stream_timeout: float
    now: Callable[[], float]

    def facts(
        self, code: str, message: str, *, response: httpx.Response | None = None, status: int | None = None
    ) -> FailureFacts:
        """The facts, with what a response's headers add to them."""
        advice = _ADVICE.get(code, "")
        if code == codes.AUTHENTICATION:
            advice = f"The key came from {self.key_label}." if self.key_label else "No key was sent: name one's place."
        text = self._shown(message)
        headers: Mapping[str, str] = response.headers if response is not None else {}
        request_id = next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)
        return FailureFacts(
            code=code,
            message=f"{self.provider} ({self.address}): {text}{'' if text.endswith('.') else '.'} {advice}".rstrip(),
            status=status if status is not None or response is None else response.status_code,
            retry_after=self._retry_after(headers),
            request_id=None if request_id is None else self._shown(request_id),
            retryable=code in codes.RETRYABLE and (status or 0) not in _PERMANENT_5XX,
        )

    def _shown(self, text: str) -> str:
        if self.key is not None:
            text = self.key.hidden_in(text)
        text = whole(text.strip())
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."

    def _retry_after(self, headers: Mapping[str, str]) -> float | None:
        milliseconds = _number(headers.get("retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        value = headers.get("retry-after")
        seconds = _number(value)
        if seconds is not None or value is None:
            return seconds
        until = _moment(value)
        if until is None:
            return None
        # The server's own clock is the one that its date was made with.
        return max(until - (_moment(headers.get("date")) or self.now()), 0.0)

    # --- refusals -----------------------------------------------------------------------------------------------------

    def refusal(self, response: httpx.Response, body: str) -> FailureFacts:
        """The facts of an answer whose status is not 200."""
        status = response.status_code
        error = _parsed(body)
        said = _said(error) or _plain(response, body)
        code = _code_of(status, error, said)
        message = f"answered {status} {response.reason_phrase}".rstrip()
        return self.facts(code, f"{message}: {said}" if said else message, response=response, status=status)

    def other(self, response: httpx.Response, body: str) -> FailureFacts:
        """The facts of an answer that is accepted and yet no stream of events."""
        error = _parsed(body).get("error")
        if error:
            return self.error_object(error, response)
        kind = response.headers.get("content-type", "no content type")
        said = f"answered with {kind} where a stream of events was asked for"
        return self.facts(codes.NOT_A_STREAM, f"{said}: {_plain(response, body)[:200]}", response=response)

    def error_object(self, error: object, response: httpx.Response | None = None) -> FailureFacts:
        """The facts of an error that stands where an answer, or a part of one, was expected."""
        table = error if isinstance(error, dict) else {}
        status = next((table[name] for name in ("status", "code") if type(table.get(name)) is int), None)
        if status is None or not 400 <= status <= 599:
            status = None
        said = _said({"error": error})
        code = _code_of(status or 500, {"error": error}, said)
        return self.facts(
            code, f"reported an error: {said or 'it does not say which'}", response=response, status=status
        )

    # --- exceptions ---------------------------------------------------------------------------------------------------

    def exception(self, error: Exception, response: httpx.Response | None) -> FailureFacts:
        """The facts of what the exchange raised; ``response`` is there once its headers were."""
        if isinstance(error, ServiceError):
            return self.error_object(error.error, response)
        code, message = self._told(error, answered=response is not None)
        return self.facts(code, message, response=response)

    def _told(self, error: Exception, *, answered: bool) -> tuple[str, str]:
        said = _innermost(error)
        match error:
            case MalformedEventError():
                return codes.MALFORMED_STREAM, f"the stream is malformed: {error}"
            case SilenceError():
                return codes.FIRST_BYTE_TIMEOUT, f"did not begin to answer for {error.seconds:g} s"
            case httpx.ReadTimeout():
                return codes.STREAM_TIMEOUT, f"sent nothing for {self.stream_timeout:g} s in the middle of the answer"
            case httpx.ConnectTimeout() | httpx.PoolTimeout():
                return codes.CONNECT_TIMEOUT, "could not be reached in time"
            case UnusableSettingError():
                return error.code, str(error)
            case httpx.ProxyError() if said.startswith("5"):
                return codes.CONNECTION_FAILED, f"could not be reached by the proxy in between: {said}"
            case httpx.ProxyError():
                return codes.PROXY, f"the proxy in between refused: {said}"
            case httpx.ConnectError():
                return _connect_code(error), f"could not be reached: {said}"
            case httpx.DecodingError():
                return codes.MALFORMED_STREAM, f"sent an answer whose compression is broken: {said}"
            case httpx.TransportError() if answered:
                return codes.STREAM_CUT, f"the connection ended in the middle of the answer: {said}"
            case httpx.TransportError():
                return codes.CONNECTION_LOST, f"the connection ended before the answer: {said}"
            case _:
                return codes.CONNECTION_FAILED, f"the request could not be made: {said}"


def _connect_code(error: BaseException) -> str:
    causes = list(_causes(error))
    for kind, code in (
        (ssl.SSLError, codes.TLS),
        (socket.gaierror, codes.DNS),
        (ConnectionRefusedError, codes.CONNECTION_REFUSED),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return code
    return codes.CONNECTION_FAILED


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and all that led to it, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _innermost(error: BaseException) -> str:
    """What the operating system or TLS said, where they said something: wrappers say less."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return getattr(cause, "verify_message", "") or cause.reason or str(cause)
        if isinstance(cause, socket.gaierror):
            return cause.strerror or str(cause)
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
    return str(error) or type(error).__name__


# --- what servers say -------------------------------------------------------------------------------------------------


def _parsed(body: str) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _said(answer: Mapping[str, Any]) -> str:
    """The message in an error answer, wherever servers put it."""
    error = answer.get("error")
    for place in (error, answer):
        if isinstance(place, str) and place:
            return place
        if isinstance(place, dict):
            for name in ("message", "detail", "error_msg"):
                value = place.get(name)
                if value:
                    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(error, ensure_ascii=False) if error else ""


def _plain(response: httpx.Response, body: str) -> str:
    return "" if "html" in response.headers.get("content-type", "") or "<html" in body[:200].lower() else body.strip()


def _code_of(status: int, answer: Mapping[str, Any], said: str) -> str:
    error = answer.get("error")
    marks = f"{error.get('code')} {error.get('type')}" if isinstance(error, dict) else ""
    if status < 500 or marks:
        if _OVERFLOW.search(marks) or (status in (400, 413, 422, 500) and _OVERFLOW.search(said)):
            return codes.CONTEXT_OVERFLOW
        if _QUOTA.search(marks):
            return codes.PAYMENT_REQUIRED
    if status == 404:
        return codes.MODEL_NOT_FOUND if error else codes.NOT_FOUND
    return _STATUS.get(status) or (codes.SERVER_ERROR if status >= 500 else codes.UNEXPECTED_STATUS)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(value, 0.0) if math.isfinite(value) else None


def _moment(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, OverflowError):
        return None
