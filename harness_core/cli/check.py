"""``harness check``: what can be known before the first model call."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import anyio
import click

from harness_core.cli._common import Chosen, common_options, emit_json, write_json
from harness_core.cli._findings import exit_status, show_findings
from harness_core.cli._sarif import as_sarif
from harness_core.errors import CompositionError
from harness_core.host.check_composition import check_composition, composition_findings
from harness_core.host.findings import Finding

__all__ = ["check"]


@click.command()
@click.option(
    "--scope", "scope_names", multiple=True, help="Check this scope; all that the composition names by default."
)
@click.option("--strict", is_flag=True, help="Warnings fail as well.")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Also write SARIF for code hosts.")
@common_options
def check(chosen: Chosen, scope_names: tuple[str, ...], strict: bool, sarif: Path | None) -> None:
    """Check the composition: everything that can be known before the first model call.

    Exits with 1 when there are errors, or, with --strict, warnings.
    """
    logging.getLogger("harness.changing").setLevel(logging.ERROR)  # what is left out is among the findings
    findings = anyio.run(_find, chosen, scope_names)
    if sarif is not None:
        write_json(sarif, as_sarif(findings))
    if chosen.as_json:
        emit_json({"findings": [finding.to_json() for finding in findings]})
    else:
        show_findings(findings)
    sys.exit(exit_status(findings, strict=strict))


async def _find(chosen: Chosen, scope_names: tuple[str, ...]) -> list[Finding]:
    try:
        composition = chosen.composition
    except CompositionError as error:
        return composition_findings(error)
    return await check_composition(composition, chosen.folder, chosen.documents, scopes=scope_names)
