"""Every id of the specification is named by a test, or stands in a list that says why not."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def listed(name: str) -> list[str]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def named_in_tests() -> set[str]:
    sources = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("harness_plugins/*/tests/**/*.py"), *HERE.glob("cases/*.json")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources if path != Path(__file__))
    return set(re.findall(r"\b[A-Z]+-\d\d\b", text))


def test_every_id_is_named_by_a_test() -> None:
    excused = set(listed("not-ours.txt"))
    named = named_in_tests()
    missing = [each for each in listed("ids.txt") if each not in named and each not in excused]
    assert missing == []


def test_no_excuse_outlives_its_reason() -> None:
    named = named_in_tests()
    assert [each for each in listed("not-ours.txt") if each in named] == []
    assert set(listed("not-ours.txt")) <= set(listed("ids.txt"))


def test_what_is_not_ours_says_why() -> None:
    lines = (HERE / "not-ours.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line.split(maxsplit=1)) < 2] == []
