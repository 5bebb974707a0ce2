"""``harness config show``: each effective value of the composition, and where it comes from."""

from __future__ import annotations

import json
import os
from typing import Any

import attrs
import click
from rich.console import Console
from rich.text import Text

from harness_core._text import printable
from harness_core.cli._common import Chosen, common_options, emit_json
from harness_core.host.composition import Composition
from harness_core.host.documents import leaves
from harness_core.host.references import DEFAULT_KEY, ENV_KEY, is_reference

__all__ = ["config"]

DEFAULT = "default"


@click.group()
def config() -> None:
    """Look at the composition as it is read."""


@config.command()
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
@click.option("--defaults", is_flag=True, help="Also show what is not said anywhere.")
@common_options
def show(chosen: Chosen, origin: bool, defaults: bool) -> None:
    """Show each effective value of the composition, and with --origin the file and line, preset or default behind it.

    Of values from the environment the variable is shown, and whether it is set; never the value.
    """
    values = _values(chosen, defaults)
    if chosen.as_json:
        emit_json({"values": values})
        return
    console = Console(highlight=False, soft_wrap=True)
    for each in values:
        shown = Text(printable(f"{each['path']} = {each['shown']}"))
        if origin:
            shown.append(f"    {each['origin']}", style="dim")
        console.print(shown)
    if not values:
        console.print("There is no composition; everything has its default.")


def _values(chosen: Chosen, defaults: bool) -> list[dict[str, Any]]:
    documents = chosen.documents
    said: dict[str, dict[str, Any]] = {}
    for path, value, place in documents.values() if documents is not None else ():
        if path:
            said[path] = {"path": path, **_shown(value), "origin": str(place), "file": place.source, "line": place.line}
    for path, why in _switches(chosen):
        said[path] = {"path": path, "value": False, "shown": "false", "origin": why}
    if defaults:
        for path, value in leaves(attrs.asdict(Composition())):
            if value not in (None, {}, []):
                said.setdefault(path, {"path": path, **_shown(value), "origin": DEFAULT})
    return sorted(said.values(), key=lambda each: each["path"]) if defaults else list(said.values())


def _switches(chosen: Chosen) -> list[tuple[str, str]]:
    """The plugins that are switched off from outside the files."""
    documents = chosen.documents
    written = {path for path, value, _ in (documents.values() if documents is not None else ()) if value is False}
    return [
        (f"{path}.enabled", "-p, or HARNESS_PLUGINS")
        for path, _, table, _ in chosen.composition.tables()
        if not table.enabled and f"{path}.enabled" not in written
    ]


def _shown(value: Any) -> dict[str, Any]:
    if is_reference(value) and isinstance(value[ENV_KEY], str):
        variable = value[ENV_KEY]
        state = "set" if variable in os.environ else "not set, has a default" if DEFAULT_KEY in value else "not set"
        return {"value": {ENV_KEY: variable}, "shown": f"${variable} ({state})"}
    # TOML has dates, and numbers that are none; JSON has neither.
    plain = json.loads(json.dumps(value, default=str), parse_constant=str)
    return {"value": plain, "shown": json.dumps(plain, ensure_ascii=False)}
