"""Plugins for compositions that go wrong: sound ones to be misused, and one with every flaw that can be asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal as OneOf

import attrs

from harness_core import PluginContext, PromptAssembly, ToolSchema, hookimpl
from harness_core.host import PluginSource


@attrs.define
class Inner:
    high: float = 1.0


@attrs.define
class GuideConfig:
    text: str = "Be kind."
    limit: int = attrs.field(default=3, validator=attrs.validators.ge(1))
    mode: OneOf["short", "long"] = "short"
    names: list[str] = attrs.field(factory=list)
    inner: Inner = attrs.field(factory=Inner)
    strict: bool = False


class Guide:
    Config = GuideConfig

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("guide:how", ctx.config.text, order=110)
        ctx.prompt.context("guide:now", "It is now.", order=10)


class Tools:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        for name in ("read", "write"):
            ctx.tools.register(ToolSchema(name, f"To {name}."), lambda call: "done")


@attrs.define
class NeedyConfig:
    key: str


class Needy:
    Config = NeedyConfig

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None: ...


class Listens:
    @hookimpl
    def system_prompt_assemble(self, assembly: PromptAssembly) -> None: ...


@attrs.define
class FlawedConfig:
    flaw: str


class Flawed:
    Config = FlawedConfig

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        FLAWS[ctx.config.flaw](ctx)


def counted(text: Callable[[int], Any]) -> Callable[[Any], Any]:
    counter = itertools.count()
    return lambda _: text(next(counter))


def fails(*_: Any) -> Any:
    raise OSError("the disk is on fire")


def twice(ctx: PluginContext) -> None:
    for name in ("a", "b"):
        ctx.prompt.section(f"flawed:{name}", "All of it.", order=7, complete=True)


FLAWS: dict[str, Callable[[PluginContext], Any]] = {
    "set-up": fails,
    "assembly": lambda ctx: ctx.prompt.section("flawed:s", fails, order=7),
    "variable": lambda ctx: ctx.prompt.section("flawed:s", "in {{ctiy}}", order=7),
    "reference": lambda ctx: ctx.prompt.context("flawed:c", "in {{ city }}", order=7),
    "zero-width": lambda ctx: ctx.prompt.section("flawed:s", "in {\u200b{city}}", order=7),
    "schema": lambda ctx: ctx.prompt.tools(lambda _: [ToolSchema("t", "", {"type": "strin"})]),
    "same-tools": lambda ctx: ctx.prompt.tools(lambda _: [ToolSchema("t"), ToolSchema("t")]),
    "unstable-section": lambda ctx: ctx.prompt.section("flawed:s", counted(str), order=7),
    "unstable-tool": lambda ctx: ctx.prompt.tools(counted(lambda n: [ToolSchema("t", str(n))])),
    "leak": lambda ctx: ctx.harness.root.prompt.section("flawed:s", "x", order=7),
    "complete": twice,
    "constraint": lambda ctx: ctx.prompt.section("flawed:s", "x", order=7, before="absent"),
    "tie": lambda ctx: ctx.prompt.section("flawed:s", "x", order=110),
    "taken": lambda ctx: ctx.tools.register(ToolSchema("read"), lambda call: ""),
    "names-tool": lambda ctx: ctx.prompt.section("flawed:s", "Use `read` and `write`.", order=7),
    "order": lambda ctx: ctx.prompt.section("flawed:s", "x", order="high"),  # type: ignore[arg-type]
    "persona": lambda ctx: ctx.prompt.section("deployment:persona", "Mine.", order=0),
}


class Typo:
    @hookimpl
    def system_prompt_asemble(self, assembly: PromptAssembly) -> None: ...


class WrongArguments:
    @hookimpl
    def agent_pre_step(self, stepp: Any) -> None: ...


def unimportable() -> Any:
    raise ImportError("No module named 'gone'")


def source(name: str, load: Callable[[], Any], **facts: Any) -> PluginSource:
    return PluginSource(
        name=name,
        distribution=facts.pop("distribution", f"dist-{name}"),
        version="1.0",
        entry_point=f"{name.replace('-', '_')}:Plugin",
        load=load,
        **facts,
    )


def preset(name: str, value: Any) -> PluginSource:
    return source(name, lambda: value)


INSTALLED = [
    source("flawed", lambda: Flawed),
    source("guide", lambda: Guide),
    source("listens", lambda: Listens),
    source("needy", lambda: Needy),
    source("old", lambda: Guide, requires=("pluggy-harness>=99",)),
    source("tools", lambda: Tools),
    source("typo", lambda: Typo),
    source("unimportable", unimportable),
    source("twice", lambda: Listens),
    source("twice", lambda: Tools, distribution="dist-other"),
    source("wrong-arguments", lambda: WrongArguments),
]
PRESETS = [preset("house", {"autoload": False}), preset("number", 7), source("unimportable-preset", unimportable)]


def find(group: str) -> list[PluginSource]:
    """What is installed, by group."""
    return PRESETS if group == "harness.presets" else INSTALLED
