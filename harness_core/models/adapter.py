"""What a model adapter is, and the table of adapters that a scope sees.

An adapter turns a neutral request into a stream of neutral chunks. It owns its connections; the loop owns retries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

import attrs

from harness_core.models.chunks import Chunk
from harness_core.models.request import CallConfig, ModelRequest

__all__ = ["ModelAdapter", "ModelInfo", "ResolvedCall", "WireAdapter", "WireRequest"]


def _names(value: Iterable[str]) -> frozenset[str]:
    return frozenset(value)


@attrs.frozen(kw_only=True)
class ResolvedCall:
    """A configuration with the adapter's own values filled in.

    ``supplied`` names the fields that the adapter added; ``context_window`` is in tokens, where it is known.
    """

    config: CallConfig
    supplied: frozenset[str] = attrs.field(default=frozenset(), converter=_names)
    context_window: int | None = None


@attrs.frozen(kw_only=True)
class ModelInfo:
    """One line of ``harness models``: a configured route, and what it still lacks (never a secret's value)."""

    provider: str
    model: str | None = None
    base_url: str | None = None
    missing: tuple[str, ...] = ()


@runtime_checkable
class ModelAdapter(Protocol):
    """The contract of an adapter (registered with ``ctx.models.register(provider, adapter)``)."""

    def resolve(self, config: CallConfig) -> ResolvedCall:
        """Fill in what the configuration leaves open. Called before each request, so it must be quick and pure.

        Raises:
            HarnessError: the configuration cannot be served (no model named, no key, ...); it says what is missing.
        """
        ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """Send the request. The iterator ends with exactly one `Finish`; leaving the context closes the connection.

        Failures of the service are not raised: they are a ``Finish("error", failure)`` (LLM-04). Cancellation is raised.
        """
        ...

    def describe(self) -> list[ModelInfo]:
        """The routes that are configured, for ``harness models``."""
        ...


@attrs.frozen(kw_only=True)
class WireRequest:
    """A request as it would be sent, without any secret, for people who want to see or repeat it.

    ``secrets`` are the headers that hold one, with a shell variable in its place: ``Bearer $DEEPSEEK_API_KEY``.
    """

    url: str
    headers: Mapping[str, str]
    secrets: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = attrs.field(repr=False)


@runtime_checkable
class WireAdapter(Protocol):
    """What an adapter offers in addition where its requests can be shown (``harness log export``)."""

    def preview(self, request: ModelRequest) -> WireRequest:
        """The request as `stream` would send it now. Sends nothing and needs no key."""
        ...
