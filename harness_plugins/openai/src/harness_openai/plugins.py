"""The two plugins: each registers one adapter under its own name, and lets it finish what it is doing when it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import attrs

from harness_core import PluginContext, hookimpl
from harness_openai.adapter import ChatCompletions
from harness_openai.dialect import DEEPSEEK, OPENAI
from harness_openai.endpoint import CompatibleEndpoint, DeepSeekEndpoint

__all__ = ["DeepSeek", "OpenAICompatible"]


class DeepSeek:
    """Serves the provider ``deepseek``: DeepSeek's own service, with what it wants to be told of earlier reasoning."""

    name = "deepseek"
    Config = DeepSeekEndpoint

    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> AsyncIterator[None]:
        adapter = ChatCompletions(ctx.name, ctx.config, DEEPSEEK)
        ctx.models.register(ctx.name, adapter)
        yield
        await adapter.retire()


class OpenAICompatible:
    """Serves the provider ``openai-compatible``, or whatever the composition calls this use of the plugin."""

    name = "openai-compatible"
    Config = CompatibleEndpoint

    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> AsyncIterator[None]:
        config: CompatibleEndpoint = ctx.config
        dialect = attrs.evolve(OPENAI, max_tokens_field=config.max_tokens_field)
        if config.replay_reasoning:
            dialect = attrs.evolve(dialect, encode=DEEPSEEK.encode)
        adapter = ChatCompletions(ctx.name, config, dialect)
        ctx.models.register(ctx.name, adapter)
        yield
        await adapter.retire()
