"""The key of an endpoint: where it is read from, and how it is kept out of everything that people read.

A key is read for each request, so that a changed one counts at once, and is held no longer than the request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from harness_openai.endpoint import Endpoint, ModelRouteError

__all__ = ["Key", "KeySource", "hidden_in_logs"]

_SENDABLE = re.compile(r"[\x21-\x7e]+")
_HIDDEN = "[key]"
_LOGGERS = ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
"""Loggers that write down, at the level of debugging, what servers answer."""


@attrs.frozen(repr=False, eq=False)
class Key:
    """A key. Neither its repr nor its text shows it."""

    _value: str

    def authorization(self) -> str:
        """The value of the Authorization header."""
        return f"Bearer {self._value}"

    def hidden_in(self, text: str) -> str:
        """The text with every occurrence of the key taken out: servers like to repeat what they refuse."""
        return text.replace(self._value, _HIDDEN)

    def __repr__(self) -> str:
        return "<Key>"


@contextmanager
def hidden_in_logs(key: Key) -> Iterator[None]:
    """Keep the key out of what the HTTP library logs meanwhile: a server may repeat it in its answer's headers."""

    def hide(record: logging.LogRecord) -> bool:
        record.msg, record.args = key.hidden_in(record.getMessage()), ()
        return True

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(hide)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hide)


@attrs.frozen
class KeySource:
    """Where the key comes from: a file, an environment variable, or nowhere."""

    file: str | None
    variable: str | None

    @classmethod
    def of(cls, endpoint: Endpoint) -> KeySource:
        if endpoint.api_key_file is not None:
            return cls(endpoint.api_key_file, None)
        return cls(None, endpoint.api_key_env)

    @property
    def label(self) -> str:
        """The source as messages name it; empty where there is none."""
        if self.file is not None:
            return f"the file {self.file!r}"
        return f"the environment variable {self.variable}" if self.variable is not None else ""

    def problem(self, environ: Mapping[str, str]) -> str | None:
        """Why no key can be read, if so."""
        try:
            self.read(environ)
        except ModelRouteError as error:
            return error.message
        return None

    def read(self, environ: Mapping[str, str]) -> Key | None:
        """The key, or None where no source is named.

        Raises:
            ModelRouteError: the source holds no usable key; the message does not show what it holds.
        """
        if self.file is not None:
            try:
                text = Path(self.file).expanduser().read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError, RuntimeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is no plain text or has no such home"
                raise ModelRouteError(
                    f"no key can be read from {self.label}: {reason}", entry="api_key_file", names=["api_key_file"]
                ) from None
            return self._checked(text.strip(), "api_key_file")
        if self.variable is None:
            return None
        return self._checked(environ.get(self.variable, "").strip(), "api_key_env")

    def _checked(self, value: str, entry: str) -> Key:
        if not value:
            state = "is empty" if self.file is not None else "is not set"
            raise ModelRouteError(f"{self.label} {state}", entry=entry, names=[entry])
        if not _SENDABLE.fullmatch(value):
            raise ModelRouteError(
                f"{self.label} holds something that no key can be (spaces, several lines, or characters beyond ASCII)",
                entry=entry,
                names=[entry],
            )
        return Key(value)
