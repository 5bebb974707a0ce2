"""A model that answers at once and costs next to nothing, so that what is measured is the harness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness_core.models import (
    CallConfig,
    Chunk,
    Finish,
    ModelInfo,
    ModelRequest,
    ResolvedCall,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
)

CALL = (ToolCallStart(0, "c", "tool-0"), ToolArgumentsDelta(0, '{"x": 1}'), Finish("tool-calls"))
TEXT = (TextDelta("done"), Finish("stop"))


class _Stream:
    __slots__ = ("_chunks",)

    def __init__(self, chunks: tuple[Chunk, ...]) -> None:
        self._chunks: Iterator[Chunk] = iter(chunks)

    async def __aenter__(self) -> _Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> Chunk:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


class LeanModel:
    """Asks for a tool ``calls`` times, then answers with a text."""

    def __init__(self) -> None:
        self.calls = 0

    def resolve(self, config: CallConfig) -> ResolvedCall:
        return ResolvedCall(config=config)

    def stream(self, request: ModelRequest) -> Any:
        self.calls -= 1
        return _Stream(CALL if self.calls >= 0 else TEXT)

    def describe(self) -> list[ModelInfo]:
        return []
