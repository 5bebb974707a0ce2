"""Model adapters for pluggy-harness: DeepSeek and every server that speaks OpenAI's chat completions."""

from harness_openai.adapter import ChatCompletions
from harness_openai.dialect import DEEPSEEK, OPENAI, Dialect
from harness_openai.endpoint import CompatibleEndpoint, DeepSeekEndpoint, Endpoint, ModelRouteError
from harness_openai.plugins import DeepSeek, OpenAICompatible

__all__ = [
    "DEEPSEEK",
    "OPENAI",
    "ChatCompletions",
    "CompatibleEndpoint",
    "DeepSeek",
    "DeepSeekEndpoint",
    "Dialect",
    "Endpoint",
    "ModelRouteError",
    "OpenAICompatible",
]
