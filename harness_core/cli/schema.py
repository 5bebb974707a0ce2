"""``harness schema``: the JSON Schema of the composition file, with the settings of every installed plugin."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness_core.cli._common import FAILED, Chosen, common_options, emit_json, write_json
from harness_core.host.discovery import discover
from harness_core.host.schema import schema_of

__all__ = ["schema"]


@click.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@common_options
def schema(chosen: Chosen, out: Path | None) -> None:
    """Print the JSON Schema of harness.toml, for editors and validators.

    It holds the settings of every installed plugin; those of a plugin that cannot be imported are left open, which is
    said on standard error, and the status is then 1.
    """
    made, problems = schema_of(discover())
    if out is None:
        emit_json(made)
    else:
        write_json(out, made)
        if not chosen.as_json:
            click.echo(f"Wrote {out}.")
    for name, problem in problems.items():
        click.echo(f"harness: the settings of the plugin {name!r} are not included: {problem}", err=True)
    sys.exit(FAILED if problems else 0)
