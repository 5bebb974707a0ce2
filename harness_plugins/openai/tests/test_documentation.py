"""The reference lists exactly the codes that there are, and the settings."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
from harness_openai import CompatibleEndpoint, codes

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "model-adapters.md").read_text(encoding="utf-8")


def test_every_code_is_listed_with_whether_it_may_pass() -> None:
    listed = dict(re.findall(r"^\| `([A-Z_]+)` \|.*\| (yes|no) \|$", REFERENCE, re.MULTILINE))
    known = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, str)}
    assert listed.keys() == known
    assert {code for code, passes in listed.items() if passes == "yes"} == codes.RETRYABLE


def test_every_setting_is_listed() -> None:
    table = REFERENCE.partition("## What is sent")[0]
    listed = set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))))
    assert listed == {field.name for field in attrs.fields(CompatibleEndpoint)}
