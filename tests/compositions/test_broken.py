"""Compositions that are wrong in one way each: what is reported, and where. Each file says so itself, in its first lines."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness_core.errors import CompositionError
from harness_core.host.check_composition import check_composition, composition_findings
from harness_core.host.documents import collect
from harness_core.host.findings import Finding
from harness_core.host.reading import structured
from tests.compositions._plugins import INSTALLED, find

FILES = sorted((Path(__file__).parent / "broken").glob("*.toml"))
SECRET = "sk-nobody-may-see-this"


def expected(file: Path) -> dict[str, Any]:
    """What the lines at the top of a file say that is found in it."""
    said = file.read_text(encoding="utf-8").partition("\n\n")[0]
    return tomllib.loads("\n".join(line.removeprefix("# ") for line in said.splitlines()))


def findings_of(file: Path) -> list[Finding]:
    try:
        documents = collect(file, find)
        composition = structured(documents)
    except CompositionError as error:
        return composition_findings(error)
    return anyio.run(lambda: check_composition(composition, file.parent, documents, installed=INSTALLED))


def test_there_are_enough_of_them_and_no_two_are_the_same() -> None:
    bodies = [file.read_text(encoding="utf-8").partition("\n\n")[2] for file in FILES]
    assert len(bodies) >= 60
    assert len(set(bodies)) == len(bodies)


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
@pytest.mark.spec("D10")
def test_the_finding_has_its_code_and_place(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_TEST_SECRET", SECRET)
    wanted = expected(file)
    says = wanted.pop("says", "")
    found = findings_of(file)
    told = [finding.to_json() for finding in found]
    matching = [each for each in told if wanted.items() <= each.items() and says in each["message"] + each["remedy"]]
    assert matching, json.dumps(told, indent=2)
    for each in told:
        assert each["remedy"].strip(), each
        assert SECRET not in json.dumps(each)
        assert "sk-secret" not in json.dumps(each)
        assert "Traceback" not in each["message"]
        if each["code"] in ("composition", "not-installed"):
            assert Path(each["file"]).suffix == ".toml" or "preset" in each["message"]
    assert list(tmp_path.iterdir()) == [], "a check leaves no file behind"


@pytest.mark.parametrize("name", ["not-toml", "persona-number", "not-installed", "extends-missing-file"])
def test_the_command_says_it_too_and_never_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    file = Path(__file__).parent / "broken" / f"{name}.toml"
    wanted = expected(file)
    for arguments in (["--json"], []):
        command = [sys.executable, "-m", "harness_core.cli", "check", "--composition", str(file), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        assert done.stderr == ""
        assert wanted["code"] in done.stdout
        if arguments:
            found = json.loads(done.stdout)["findings"]
            assert any(each.get("line") == wanted.get("line") for each in found)
