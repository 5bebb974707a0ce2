"""Neutral messages, tools and requests as the JSON that goes over the wire (LLM-02, LLM-05).

Everything here is a pure function. The order of fields is fixed, fields that say nothing are absent, and the messages
stand last, so that a request that extends another begins with the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness_core.models import (
    AssistantMessage,
    Message,
    ModelRequest,
    ReasoningBlock,
    ToolResultMessage,
    ToolSchema,
    encoded_array,
    encoded_object,
)

__all__ = ["RESERVED", "compact", "message_text", "message_text_with_reasoning", "request_body", "tool_text"]

RESERVED = frozenset(
    {
        "model",
        "stream",
        "stream_options",
        "messages",
        "tools",
        "n",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
    }
)
"""Fields that ``CallConfig.extra`` may not hold: the configuration has its own for them, or the adapter relies on them."""

_NO_PARAMETERS = {"type": "object", "properties": {}}
_NO_OBJECT = "unreadable_arguments"
"""Where arguments stand in a conversation's history that were no JSON object when the model wrote them: servers put the
arguments of earlier calls into their templates as objects and refuse the whole request otherwise."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def compact(value: Any) -> str:
    """JSON text without spaces, keys in their own order."""
    return _encode(value)


def request_body(
    request: ModelRequest,
    encode: Callable[[Message], str],
    effort: Callable[[str], Mapping[str, Any]],
    max_tokens_field: str,
) -> bytes:
    """The body of a request; equal requests give equal bytes."""
    header, config = request.header, request.header.config
    fields: dict[str, Any] = {"model": config.model, "stream": True, "stream_options": {"include_usage": True}}
    sampling = {"temperature": config.temperature, "top_p": config.top_p, max_tokens_field: config.max_tokens}
    fields.update((name, value) for name, value in sampling.items() if value is not None)
    if config.effort is not None:
        fields.update(effort(config.effort))
    if config.stop is not None:
        fields["stop"] = list(config.stop)
    if config.seed is not None:
        fields["seed"] = config.seed
    fields.update(config.extra)
    if header.tools:
        fields["tools"] = encoded_array(header.tools, tool_text)
    system = [compact({"role": "system", "content": header.system})] if header.system else []
    fields["messages"] = encoded_array(request.messages, encode, before=system)
    return encoded_object(fields)


def tool_text(tool: ToolSchema) -> str:
    """One tool's JSON text."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or _NO_PARAMETERS
    return compact({"type": "function", "function": function})


def message_text(message: Message) -> str:
    """One message's JSON text; empty where nothing of it is for the server to read."""
    return _text(message, reasoning=False)


def message_text_with_reasoning(message: Message) -> str:
    """The same with the reasoning that led to it.

    DeepSeek requires the field of every earlier answer that called tools, even where the model had thought nothing, and
    ignores it elsewhere. Whether a message carries it must not depend on the messages after it, or a longer request
    would no longer begin with the bytes of a shorter one.
    """
    return _text(message, reasoning=True)


def _text(message: Message, *, reasoning: bool) -> str:
    if isinstance(message, AssistantMessage):
        return _assistant_text(message, reasoning=reasoning)
    if isinstance(message, ToolResultMessage):
        return compact({"role": "tool", "tool_call_id": message.call_id, "content": message.text})
    return compact({"role": "user", "content": message.text})


def _assistant_text(message: AssistantMessage, *, reasoning: bool) -> str:
    calls = message.tool_calls
    thought = "".join(block.text for block in message.content if isinstance(block, ReasoningBlock)) if reasoning else ""
    if not (message.text or calls or thought):
        return ""
    # The content is there even when it is empty: DeepSeek refuses an assistant message without the field.
    fields: dict[str, Any] = {"role": "assistant", "content": message.text}
    if thought or (reasoning and calls):
        fields["reasoning_content"] = thought
    if calls:
        fields["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for call in calls
        ]
    return compact(fields)


def _arguments(text: str) -> str:
    if not text.strip():
        return "{}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return text if isinstance(value, dict) else compact({_NO_OBJECT: text})
