"""Findings as SARIF 2.1.0, the format that code hosts show beside a change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness_core.host.findings import CODES, Finding

__all__ = ["as_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """One run with one result for each finding."""
    rules = [{"id": code, "shortDescription": {"text": meaning}} for code, (_, meaning) in CODES.items()]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "harness check", "rules": rules}},
                "results": [_result(each) for each in findings],
            }
        ],
    }


def _result(finding: Finding) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": finding.severity.value,
        "message": {"text": f"{finding.message} {finding.remedy}"},
    }
    if finding.file is not None:
        result["locations"] = [_location(finding.file, finding.line)]
    return result


def _location(file: str, line: int | None) -> dict[str, Any]:
    """Where it is: a file by its URI, relative to the current folder where it is in there; a preset by its name."""
    path = Path(os.path.abspath(file))
    if not path.is_file():
        return {"logicalLocations": [{"name": file}]}
    here = Path.cwd()
    uri = quote(os.fsencode(path.relative_to(here).as_posix())) if path.is_relative_to(here) else path.as_uri()
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}
