"""Findings as SARIF 2.1.0, the format that code hosts show beside a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        location: dict[str, Any] = {"artifactLocation": {"uri": finding.file}}
        if finding.line is not None:
            location["region"] = {"startLine": finding.line}
        result["locations"] = [{"physicalLocation": location}]
    return result
