"""Models in neutral form: messages, tool schemas, requests, streamed chunks, and what an adapter is."""

from harness_core.models.adapter import ModelAdapter, ModelInfo, ResolvedCall, WireAdapter, WireRequest
from harness_core.models.body import EncodedJson, encoded_array, encoded_object
from harness_core.models.chunks import (
    Chunk,
    ChunkAssembler,
    FailureFacts,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    chunk_from_json,
)
from harness_core.models.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    ReasoningBlock,
    Source,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    message_from_json,
)
from harness_core.models.registry import AdapterEntry, ModelRegistry, ScopedModels
from harness_core.models.request import CallConfig, ModelRequest, RequestHeader
from harness_core.models.schema import ToolSchema
from harness_core.models.scripted import ScriptedAnswer, ScriptedModel

__all__ = [
    "AdapterEntry",
    "ModelRegistry",
    "ScopedModels",
    "ScriptedAnswer",
    "ScriptedModel",
    "AssistantBlock",
    "AssistantMessage",
    "CallConfig",
    "Chunk",
    "ChunkAssembler",
    "EncodedJson",
    "FailureFacts",
    "Finish",
    "FinishReason",
    "Message",
    "ModelAdapter",
    "ModelInfo",
    "ModelRequest",
    "ReasoningBlock",
    "ReasoningDelta",
    "RequestHeader",
    "ResolvedCall",
    "Source",
    "TextBlock",
    "TextDelta",
    "ToolArgumentsDelta",
    "ToolCallBlock",
    "ToolCallStart",
    "ToolResultMessage",
    "ToolSchema",
    "Usage",
    "UsageReport",
    "UserMessage",
    "WireAdapter",
    "WireRequest",
    "chunk_from_json",
    "encoded_array",
    "encoded_object",
    "message_from_json",
]
