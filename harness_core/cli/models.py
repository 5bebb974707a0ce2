"""``harness models``: the model endpoints that are configured, what each of them lacks, and where it comes from."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import attrs
import click
from rich.console import Console
from rich.text import Text

from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.models import AdapterEntry, ModelInfo

__all__ = ["models"]


@click.command()
@common_options
def models(chosen: Chosen) -> None:
    """List the model endpoints that are configured, and what each of them lacks.

    The one that requests start with is marked; the command fails where that one lacks something or is not there.
    """
    listed = anyio.run(_listed, chosen)
    default = [each for each in listed["models"] if each["default"]]
    usable = bool(default) and not any(each["missing"] for each in default)
    if chosen.as_json:
        emit_json(listed)
    else:
        _show(listed)
    if not usable:
        sys.exit(FAILED)


async def _listed(chosen: Chosen) -> dict[str, Any]:
    async with chosen.harness() as harness:
        config = harness.agents.settings.config
        found = [
            _described(entry, info, default=provider == config.provider)
            for provider, entry in sorted(harness.models.effective(harness.root).items())
            for info in entry.adapter.describe()
        ]
        return {
            "models": found,
            "provider": config.provider,
            "model": config.model,
            "failures": [{"plugin": each.name, "error": str(each.error)} for each in harness.failures],
        }


def _described(entry: AdapterEntry, info: ModelInfo, *, default: bool) -> dict[str, Any]:
    return {
        **attrs.asdict(info),
        "provider": entry.provider,
        "missing": list(info.missing),
        "default": default,
        "plugin": entry.origin.plugin,
        "by": str(entry.origin),
    }


def _show(listed: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for each in listed["models"]:
        model = (listed["model"] if each["default"] else None) or each["model"] or "the model that a request names"
        place = f" at {each['base_url']}" if each["base_url"] else ""
        console.print(Text(f"{'*' if each['default'] else ' '} {each['provider']}: {model}{place}"))
        console.print(Text(f"      from {each['by']}", style="dim"))
        for missing in each["missing"]:
            console.print(Text(f"      missing: {missing}"))
    if not any(each["default"] for each in listed["models"]):
        console.print(Text(f"Nobody serves the provider {listed['provider']!r}, which requests start with."))
    for failure in listed["failures"]:
        console.print(Text(f"The plugin {failure['plugin']!r} is left out: {failure['error']}"))
