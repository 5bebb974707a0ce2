"""The composition: which plugins run where, with which settings, which agents there are, and which model answers.

The classes here are what ``harness.toml`` is structured into; reading.py reads it. They import no plugin.
"""

# ruff: noqa: RUF009 -- `_described` makes a field

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal as OneOf, TypeAlias

import attrs

from harness_core.host.agents import AgentSettings
from harness_core.host.loading import PluginUse, ScopePath
from harness_core.host.offline import OfflineModel
from harness_core.host.profiles import AgentProfile
from harness_core.host.stores import open_store
from harness_core.models import CallConfig
from harness_core.models.offline import OFFLINE_PROVIDER
from harness_core.prompt import PromptSettings
from harness_core.prompt._placement import Override, Overrides

__all__ = [
    "AgentTable",
    "Composition",
    "ModelTable",
    "PlacementTable",
    "PluginTable",
    "PromptTable",
    "SessionTable",
]

SESSIONS_FOLDER = ".harness/sessions"
"""Where sessions are kept unless the composition says otherwise; relative to the composition's folder."""

OnError: TypeAlias = OneOf["fail", "skip"]


def _described(text: str, **options: Any) -> Any:
    """A field with the description that the reference and the JSON Schema show."""
    return attrs.field(metadata={"description": text}, **options)


@attrs.define(kw_only=True)
class PromptTable:
    """The prompt's settings for everybody."""

    persona: str = _described("The deployment's own text, a template; it stands at order 0.", default="")
    identity: bool = _described("Begin with the built-in section that says what the model is.", default=True)
    runtime_context: bool = _described("Append contexts at all.", default=True)
    tool_order: list[str] | None = _described(
        "Tool names in the wanted order, with `<unlisted-tools>` where all others go.", default=None
    )
    invariants: bool = _described("Also refuse empty and duplicate names after the waterfall.", default=False)


@attrs.define(kw_only=True)
class ModelTable:
    """What requests start with."""

    provider: str | None = _described("The name of a registered model provider.", default=None)
    model: str | None = _described("The model's name, as the provider spells it.", default=None)
    temperature: float | None = _described("Sampling temperature.", default=None)
    top_p: float | None = _described("Nucleus sampling.", default=None)
    max_tokens: int | None = _described("The most tokens of one answer.", default=None)
    effort: str | None = _described("How much the model may reason, as the provider spells it.", default=None)
    seed: int | None = _described("The seed of sampling, where the provider takes one.", default=None)

    def config(self) -> CallConfig:
        return CallConfig(**attrs.asdict(self))


@attrs.define(kw_only=True)
class SessionTable:
    """Where sessions' logs are kept, and when they must outlive the machine."""

    store: str = _described("file, memory, or a store that an installed distribution offers.", default="file")
    config: dict[str, Any] = _described("The store's own settings.", factory=dict)
    folder: str = _described("The folder of the logs, relative to where the command works.", default=SESSIONS_FOLDER)
    durability: OneOf["request", "event", "never"] = _described(
        "Wait for the disk before each request, after each event, or never.", default="request"
    )


@attrs.define(kw_only=True)
class PluginTable:
    """One plugin, by the name of its entry point, or by another where ``plugin`` holds that."""

    plugin: str | None = _described("The entry point's name, where the table's own name is another.", default=None)
    enabled: bool = _described("False leaves the plugin out, also where it would be found installed.", default=True)
    config: dict[str, Any] = _described("The plugin's own settings.", factory=dict)
    before: list[str] = _described("Plugins that are registered after this one.", factory=list)
    after: list[str] = _described("Plugins that are registered before this one.", factory=list)
    scope: str | None = _described("The scope that sees the plugin; everybody does by default.", default=None)
    on_error: OnError | None = _described("What a failure of this plugin does: fail, or skip it.", default=None)


@attrs.define(kw_only=True)
class PlacementTable:
    """What becomes of one section or context: left out, or placed elsewhere."""

    plugin: str | None = _described("Only where this plugin registered it.", default=None)
    exclude: bool = _described("Leave it out.", default=False)
    order: float | None = _described("An order in the place of its own.", default=None)
    before: list[str] = _described("Names that it precedes.", factory=list)
    after: list[str] = _described("Names that it follows.", factory=list)


@attrs.define(kw_only=True)
class AgentTable:
    """One sort of agent: a scope of its own below the global one, or below its parent's."""

    parent: str | None = _described(
        "The agent below whose scope this one's is: it sees what that one sees.", default=None
    )
    persona: str | None = _described(
        "The deployment's text for this agent, in the place of prompt.persona.", default=None
    )
    runtime_context: bool = _described("Append contexts at all.", default=True)
    tools: list[str] | None = _described(
        "The only tools that it inherits, as names or plugin:name; its own plugins' tools are not filtered.",
        default=None,
    )
    deny_tools: list[str] = _described("Tools that it does not inherit, as names or plugin:name.", factory=list)
    model: ModelTable = _described("What its requests start with; the rest is as for everybody.", factory=ModelTable)
    plugins: dict[str, PluginTable] = _described("Plugins that only this agent sees.", factory=dict)
    sections: dict[str, PlacementTable] = _described("Single sections, for this agent.", factory=dict)
    contexts: dict[str, PlacementTable] = _described("Single contexts, for this agent.", factory=dict)


@attrs.define(kw_only=True)
class Composition:
    """A composition file's content; tables that are absent have their defaults."""

    extends: str | list[str] = _described(
        "Compositions to start from: a path that ends in .toml, or the name of an installed preset.", factory=list
    )
    prompt: PromptTable = _described("The prompt's settings.", factory=PromptTable)
    model: ModelTable = _described("What requests start with.", factory=ModelTable)
    session: SessionTable = _described("Where sessions are kept.", factory=SessionTable)
    plugins: dict[str, PluginTable] = _described("The plugins, in the order of their registration.", factory=dict)
    agents: dict[str, AgentTable] = _described("The agents, by name.", factory=dict)
    sections: dict[str, PlacementTable] = _described("Single sections, for everybody.", factory=dict)
    contexts: dict[str, PlacementTable] = _described("Single contexts, for everybody.", factory=dict)
    autoload: bool = _described("Also load every installed plugin that is not named.", default=True)
    on_error: OnError = _described("What a failing plugin does: stop the start, or stay out.", default="fail")
    outermost: list[str] = _described("Plugins whose listeners stand outside all others.", factory=list)

    def settings(self) -> PromptSettings:
        """The settings of the prompt registry."""
        return PromptSettings(**attrs.asdict(self.prompt))

    def options(self) -> dict[str, Any]:
        """What a harness is made with besides the prompt's and the agents' settings."""
        return {
            "plugins": self.uses(),
            "autoload": self.autoload,
            "on_error": self.on_error,
            "overrides": self.overrides(),
            "models": self.models(),
        }

    def tables(self) -> Iterator[tuple[str, str, PluginTable, ScopePath]]:
        """Each plugin that is named: its path in the file, its name, its table, and the scope that it is for."""
        for name, table in self.plugins.items():
            yield f"plugins.{name}", name, table, self.path(table.scope) if table.scope is not None else ()
        for agent, its in self.agents.items():
            for name, table in its.plugins.items():
                yield f"agents.{agent}.plugins.{name}", name, table, self.path(agent)

    def path(self, scope: str) -> ScopePath:
        """The names of the scopes from below the global one to the one of that name."""
        names = [scope]
        while (
            (table := self.agents.get(names[0])) is not None and table.parent is not None and table.parent not in names
        ):
            names.insert(0, table.parent)
        return tuple(names)

    def scope_names(self) -> list[str]:
        """The scopes that the composition names."""
        named = [path[-1] for _, _, table, path in self.tables() if path and table.enabled]
        return list(dict.fromkeys([*self.agents, *named]))

    def uses(self) -> list[PluginUse]:
        """The plugins that the file names, in its order; what answers offline comes first, where no model is named."""
        offline = [PluginUse(plugin=OfflineModel)] if self.model.provider is None else []
        listed = [
            PluginUse(
                plugin=table.plugin or name,
                name=name if table.plugin else None,
                config=table.config,
                scope=path or None,
                before=table.before,
                after=table.after,
                outermost=name in self.outermost,
                on_error=table.on_error,
                enabled=table.enabled,
            )
            for _, name, table, path in self.tables()
        ]
        return (
            offline
            + listed
            + [
                PluginUse(plugin=each, name=f"agent {each.agent}", scope=self.path(each.agent), last=True)
                for each in self._profiles()
            ]
        )

    def _profiles(self) -> list[AgentProfile]:
        """The agents' own parts, parents first: a restriction names tools that must be there."""
        names = sorted(self.agents, key=lambda name: len(self.path(name)))
        return [
            AgentProfile(
                agent=name,
                persona=(table := self.agents[name]).persona,
                runtime_context=table.runtime_context,
                tools=None if table.tools is None else tuple(table.tools),
                deny_tools=tuple(table.deny_tools),
            )
            for name in names
        ]

    def overrides(self) -> dict[ScopePath, Overrides]:
        """What is said of single contributions, by the scope for which it is said."""
        return {
            (): _overrides(self.sections, self.contexts),
            **{self.path(name): _overrides(table.sections, table.contexts) for name, table in self.agents.items()},
        }

    def models(self) -> dict[ScopePath, CallConfig]:
        """What the requests of the agents of a scope start with, where that differs from everybody's."""
        return {self.path(name): table.model.config() for name, table in self.agents.items()}

    def agent_settings(self, folder: Path) -> AgentSettings:
        """What all agents share; relative folders are relative to ``folder``.

        Raises:
            CompositionError: the session store cannot be had.
        """
        return AgentSettings(
            store=open_store(self.session.store, folder / self.session.folder, self.session.config),
            durability=self.session.durability,
            config=self.call_config(),
        )

    def call_config(self) -> CallConfig:
        """What requests start with; a script answers where no provider is named."""
        return attrs.evolve(self.model.config(), provider=self.model.provider or OFFLINE_PROVIDER)


def _overrides(sections: Mapping[str, PlacementTable], contexts: Mapping[str, PlacementTable]) -> Overrides:
    tables = {("section", name): table for name, table in sections.items()}
    tables |= {("context", name): table for name, table in contexts.items()}
    return {key: Override(**attrs.asdict(table)) for key, table in tables.items()}
