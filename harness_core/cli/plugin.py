"""``harness plugin``: for those who write plugins. ``harness plugin check`` holds an installed one to the contract."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import click

from harness_core.cli._common import Chosen, common_options, emit_json
from harness_core.cli._findings import exit_status, show_findings
from harness_core.errors import CompositionError
from harness_core.host import PluginSource

__all__ = ["plugin"]


@click.group()
def plugin() -> None:
    """For authors of plugins."""


@plugin.command()
@click.argument("name", metavar="DIST")
@click.option(
    "--config",
    "settings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML file with the settings to check with: the plugin's own, or a table for each plugin of the distribution.",
)
@click.option("--strict", is_flag=True, help="Warnings fail as well.")
@click.option(
    "--import-seconds",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=0.5,
    show_default=True,
    help="From when on an import is slow.",
)
@common_options
def check(chosen: Chosen, name: str, settings: Path | None, strict: bool, seconds: float) -> None:
    """Check an installed plugin against the contract of a plugin.

    DIST is the name of a distribution, or of one plugin. It is loaded alone and beside all other installed plugins, with
    the settings of --config, or of the composition. Exits with 1 when there are errors, or, with --strict, warnings.
    """
    from harness_core.testing.distribution import distribution_findings, installed_plugins

    sources = installed_plugins(name)
    names = {source.name for source in sources}
    uses = [use for use in chosen.composition.uses() if isinstance(use.plugin, str)]
    configs = {use.name or use.plugin: use.config for use in uses if (use.name or use.plugin) in names}
    if settings is not None:
        configs |= _settings(settings, sources)
    others = [use for use in uses if use.plugin not in names and use.scope is None]
    findings = anyio.run(lambda: distribution_findings(sources, configs, others=others, slow=seconds))
    if chosen.as_json:
        plugins = [source.facts() for source in sources]
        emit_json({"plugins": plugins, "findings": [finding.to_json() for finding in findings]})
    else:
        for source in sources:
            click.echo(f"Checked {source.label}.")
        show_findings(findings)
    sys.exit(exit_status(findings, strict=strict))


def _settings(file: Path, sources: Sequence[PluginSource]) -> dict[str, Any]:
    """The settings by plugin: one table for each, or the file itself where there is only one plugin.

    Raises:
        CompositionError: the file cannot be read, or is no TOML.
    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CompositionError(
            f"The settings in {file} cannot be read: {error}.", remedy="Give a TOML file.", file=str(file)
        ) from error
    names = [source.name for source in sources]
    if table and set(table) <= set(names):
        return table
    if len(names) > 1:
        raise CompositionError(
            f"{file} has the keys {', '.join(sorted(table)) or 'none'}, but the distribution has several plugins.",
            remedy=f"Write one table for each: {', '.join(f'[{each}]' for each in names)}.",
            file=str(file),
            known=names,
        )
    return {names[0]: table}
