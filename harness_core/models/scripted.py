"""A model that answers from a script: for tests, for demonstrations, and for working offline. Sends nothing anywhere."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import attrs

from harness_core.models.adapter import ModelInfo, ResolvedCall
from harness_core.models.chunks import (
    Chunk,
    FailureFacts,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from harness_core.models.messages import Usage
from harness_core.models.request import CallConfig, ModelRequest

__all__ = ["ScriptedAnswer", "ScriptedModel"]


@attrs.frozen(kw_only=True)
class ScriptedAnswer:
    """One answer of a script.

    ``calls`` are ``(tool name, arguments)`` pairs, the arguments a mapping or raw text; ``failure`` ends the stream as an
    error after what else there is; ``delay`` is slept before each chunk; ``chunks`` replaces everything by chunks of
    your own.
    """

    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    finish: FinishReason | None = None
    failure: FailureFacts | None = None
    usage: Usage | None = None
    delay: float = 0.0
    chunks: Sequence[Chunk] | None = None

    def stream(self, number: int) -> Iterable[Chunk]:
        """The chunks of this answer, which is number ``number`` of its script."""
        if self.chunks is not None:
            yield from self.chunks
            return
        if self.reasoning:
            yield ReasoningDelta(self.reasoning)
        for piece in _pieces(self.text):
            yield TextDelta(piece)
        for index, (name, arguments) in enumerate(self.calls):
            yield ToolCallStart(index, f"call-{number}-{index + 1}", name)
            yield ToolArgumentsDelta(index, arguments if isinstance(arguments, str) else json.dumps(dict(arguments)))
        if self.usage is not None:
            yield UsageReport(self.usage)
        if self.failure is not None:
            yield Finish("error", self.failure)
        else:
            yield Finish(self.finish or ("tool-calls" if self.calls else "stop"))


def _pieces(text: str) -> list[str]:
    """As a service streams it: in more than one fragment where there are words."""
    words = text.split(" ")
    return [word if place == 0 else f" {word}" for place, word in enumerate(words)] if text else []


Scripted: TypeAlias = (
    "str | ScriptedAnswer | FailureFacts | Callable[[ModelRequest], str | ScriptedAnswer | FailureFacts]"
)


class ScriptedModel:
    """An adapter that gives the scripted answers one after another, and then ``otherwise`` for ever.

    Args:
        answers: texts, `ScriptedAnswer` records, `FailureFacts`, or functions of the request that return one of these.
        otherwise: the answer once the script is used up; without one the request fails and says so.
        model: the model's name where a request names none.
        context_window: what it says of itself, in tokens.
        sleep: what ``delay`` is slept with; tests replace it.

    ``requests`` keeps what was asked.
    """

    def __init__(
        self,
        *answers: Scripted,
        otherwise: Scripted | None = None,
        model: str = "scripted",
        context_window: int | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._answers = list(answers)
        self._otherwise = otherwise
        self._model = model
        self._context_window = context_window
        self._sleep = sleep

    def add(self, *answers: Scripted) -> None:
        """Append to the script."""
        self._answers += answers

    def resolve(self, config: CallConfig) -> ResolvedCall:
        supplied: set[str] = set() if config.model else {"model"}
        return ResolvedCall(
            config=attrs.evolve(config, model=config.model or self._model),
            supplied=supplied,
            context_window=self._context_window,
        )

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        return self._streaming(request)

    @asynccontextmanager
    async def _streaming(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        self.requests.append(request)
        stream = self._chunks(self._next(request), len(self.requests))
        try:
            yield stream
        finally:
            await stream.aclose()

    async def _chunks(self, answer: ScriptedAnswer, number: int) -> AsyncGenerator[Chunk, None]:
        for chunk in answer.stream(number):
            if answer.delay:
                await self._sleep(answer.delay)
            yield chunk

    def _next(self, request: ModelRequest) -> ScriptedAnswer:
        given = self._answers.pop(0) if self._answers else self._otherwise
        if given is None:
            count = len(self.requests) - 1
            given = FailureFacts(
                code="SCRIPT_USED_UP", message=f"The script has no answer to this request; it had {count}."
            )
        if not isinstance(given, (str, ScriptedAnswer, FailureFacts)):
            given = given(request)
        if isinstance(given, str):
            return ScriptedAnswer(text=given)
        return ScriptedAnswer(failure=given) if isinstance(given, FailureFacts) else given

    def describe(self) -> list[ModelInfo]:
        return [ModelInfo(provider="scripted", model=self._model)]
