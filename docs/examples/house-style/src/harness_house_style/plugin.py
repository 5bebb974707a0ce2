"""The plugin: one section, put together once, when the plugin is set up. Nothing in it changes while agents work."""

from __future__ import annotations

from harness_core import Literal, PluginContext, hookimpl
from harness_house_style.config import Config

__all__ = ["HouseStyle"]

SECTION_ORDER = 180
"""Late among guidance (100 to 200): how something is said comes after what is to be done."""


class HouseStyle:
    """Tells the model how its texts are to be written."""

    name = "house-style"
    Config = Config

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        config: Config = ctx.config
        lines: list[str | Literal] = [
            f"Write in {config.spelling} spelling, in sentences of at most {config.words_per_sentence} words."
        ]
        for rule in config.rules:
            # What a publisher wrote is data: as a Literal it is never searched for {{references}}.
            lines += ["\n- ", Literal(rule)]
        ctx.prompt.section("house-style:rules", lines, order=SECTION_ORDER)
