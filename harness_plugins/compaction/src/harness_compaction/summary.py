"""A summary written by a model: one request of its own, through the adapter that serves the agent. Logs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from harness_compaction.texts import INSTRUCTIONS, REQUEST, transcript
from harness_core.models import (
    AdapterEntry,
    CallConfig,
    ChunkAssembler,
    Message,
    ModelRequest,
    RequestHeader,
    Usage,
    UserMessage,
)

__all__ = ["SummaryError", "written"]

_WORDS = 0.6
"""Words of a token, so that the limit can be said in words, which models keep to better."""


class SummaryError(Exception):
    """The model gave no summary; the text says why."""


async def written(
    entry: AdapterEntry, config: CallConfig, messages: Sequence[Message], *, session_id: str, limit: int, room: int
) -> tuple[str, Usage | None]:
    """Ask for a summary of at most ``limit`` tokens; the record that is sent has at most ``room`` characters.

    Raises:
        SummaryError: the request failed, or the answer is empty.
        Exception: what the adapter raised.
    """
    resolved = entry.adapter.resolve(config)
    words = max(50, round(limit * _WORDS))
    question = REQUEST.format(words=words, record=transcript(messages, room))
    request = ModelRequest(
        header=RequestHeader(config=resolved.config, supplied=resolved.supplied, system=INSTRUCTIONS),
        messages=(UserMessage(id="record", content=question),),
        session_id=session_id,
    )
    assembler = ChunkAssembler()
    async with entry.adapter.stream(request) as chunks:
        async for chunk in chunks:
            assembler.add(chunk)
            if assembler.finish is not None:
                break
    finish = assembler.finish
    if finish is None or finish.reason in ("error", "aborted"):
        raise SummaryError(finish.failure.message if finish is not None and finish.failure else "the stream broke off")
    text = assembler.message(tool_calls=False).text.strip()
    if not text:
        raise SummaryError("the answer is empty")
    return text, assembler.usage
