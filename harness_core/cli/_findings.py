"""How findings are shown, and what exit status they make. Finds nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape

from harness_core._text import counted, printable
from harness_core.cli._common import FAILED
from harness_core.host.findings import Finding, Severity

__all__ = ["exit_status", "show_findings"]

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def show_findings(findings: Sequence[Finding]) -> None:
    """Each finding with its place, what is different and the remedy; then how many there are."""
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        style = _STYLES[finding.severity]
        scope = f" (scope {finding.scope})" if finding.scope else ""
        console.print(
            f"[{style}]{finding.severity.value}[/] [bold]{finding.code}[/]{_escaped(scope)}: {_escaped(finding.message)}"
        )
        if finding.file:
            line = f":{finding.line}" if finding.line is not None else ""
            console.print(f"    [dim]{_escaped(finding.file)}{line}[/]")
        for line in (finding.details or "").splitlines():
            console.print(f"      {_escaped(line)}")
        console.print(f"    {_escaped(finding.remedy)}")
    counts = [(severity, sum(finding.severity is severity for finding in findings)) for severity in Severity]
    console.print(", ".join(counted(count, severity.value) for severity, count in counts))


def _escaped(text: str) -> str:
    return escape(printable(text))


def exit_status(findings: Iterable[Finding], *, strict: bool) -> int:
    """1 where something is an error, or, strictly, a warning."""
    failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return FAILED if any(finding.severity in failing for finding in findings) else 0
