"""What a user configures of one endpoint: where it is, which key opens it, what requests start with, how long to wait.

Owns the checks of these values. No value that may be a secret ever stands in a message of theirs.
"""

from __future__ import annotations

import math
import re
from typing import Any

import attrs

from harness_core.errors import HarnessError

__all__ = ["CompatibleEndpoint", "DeepSeekEndpoint", "Endpoint", "ModelRouteError"]

_BASE_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\](:\d+)?|[^\s/?#@\[\]]+)(/[^\s?#@]*)?")
_PROXY = re.compile(r"(https?|socks5h?)://\S+")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"})
_OWN_HEADERS = frozenset({"accept", "accept-encoding", "content-length", "content-type", "host", "transfer-encoding"})


class ModelRouteError(HarnessError):
    """A model endpoint lacks something that no request can do without; ``names`` says what."""

    code = "model-route"


def _address(_: object, __: object, value: str | None) -> None:
    if value is not None and not _BASE_URL.fullmatch(value):
        raise ValueError(
            "must be http:// or https://, a host and a path, without user, password, query or fragment (the value is "
            "not shown, in case it holds a password)"
        )


def _variable(_: object, __: object, value: str | None) -> None:
    if value is not None and not _VARIABLE.fullmatch(value):
        raise ValueError(
            "must be the name of an environment variable, in capitals (the value is not shown, in case it is the key "
            "itself)"
        )


def _proxy(_: object, __: object, value: str | None) -> None:
    if value is not None and not _PROXY.fullmatch(value):
        raise ValueError(
            "must be http://, https:// or socks5:// with a host (the value is not shown, in case it holds a password)"
        )


def _seconds(_: object, __: object, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"must be a number of seconds above 0, not {value!r}")


def _tokens(_: object, __: object, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError(f"must be a number of tokens above 0, not {value!r}")


def _headers(_: object, __: object, value: dict[str, str]) -> None:
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
            raise ValueError("must be a table of header names and plain ASCII texts")
        if name.lower() in _SECRET_HEADERS:
            raise ValueError(f"must not hold {name}: name the key's place in api_key_env or api_key_file instead")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"must not hold {name}, which the adapter sets itself")


@attrs.define(kw_only=True)
class Endpoint:
    """The settings that all endpoints share. Times are in seconds."""

    base_url: str | None = attrs.field(default=None, validator=_address)
    """What ``/chat/completions`` is appended to."""
    model: str | None = None
    """What requests get that name none; so do the other values of requests below."""
    api_key_env: str | None = attrs.field(default=None, validator=_variable)
    """The environment variable that the key is read from, for each request; where neither is named, none is sent."""
    api_key_file: str | None = None
    """The file that the key is read from, for each request; it precedes the variable."""
    temperature: float | None = None
    """What requests get that say nothing of it."""
    max_tokens: int | None = attrs.field(default=None, validator=_tokens)
    """The limit of output tokens for requests that give none."""
    effort: str | None = None
    """How much the model reasons, in the service's own words."""
    context_window: int | None = attrs.field(default=None, validator=_tokens)
    """The model's context in tokens, for plugins that need to know."""
    connect_timeout: float = attrs.field(default=10.0, validator=_seconds)
    """Until the connection stands."""
    first_byte_timeout: float = attrs.field(default=300.0, validator=_seconds)
    """From then until the answer begins, with its headers."""
    stream_timeout: float = attrs.field(default=300.0, validator=_seconds)
    """Between two arrivals of bytes after that: some servers send the headers at once and then work in silence."""
    headers: dict[str, str] = attrs.field(factory=dict[str, str], validator=_headers, repr=False)
    """Further headers; none that carries a key."""
    proxy: str | None = attrs.field(default=None, validator=_proxy, repr=False)  # it may hold a password
    """A proxy, instead of what the environment variables name that httpx obeys."""
    ca_bundle: str | None = None
    """A file of certificates to trust, instead of what the environment names."""


@attrs.define(kw_only=True)
class DeepSeekEndpoint(Endpoint):
    """DeepSeek's own service, or a proxy of it."""

    base_url: str | None = attrs.field(default="https://api.deepseek.com", validator=_address)
    api_key_env: str | None = attrs.field(default="DEEPSEEK_API_KEY", validator=_variable)


def _token_field(_: object, __: object, value: Any) -> None:
    if value not in ("max_tokens", "max_completion_tokens"):
        raise ValueError("must be 'max_tokens' or 'max_completion_tokens'")


@attrs.define(kw_only=True)
class CompatibleEndpoint(Endpoint):
    """Any server with OpenAI's chat completions."""

    replay_reasoning: bool = False
    """Send the model's own reasoning back to it: some templates want that; OpenAI's own service knows no such field."""
    max_tokens_field: str = attrs.field(default="max_tokens", validator=_token_field)
    """The name under which the server takes the limit of output tokens; or ``max_completion_tokens``."""
