"""Every code of an error or a finding has a page, and the example on it produces what the page shows."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from harness_core.cli._app import app
from harness_core.errors import HarnessError, PluginError, RenderError, ToolOrderError
from harness_core.host.findings import CODES, Finding
from tests.docs._pages import CODE_PAGES, ROOT, parsed

REFERENCE = ROOT / "docs" / "reference"
NEVER_RAISED = (ToolOrderError, RenderError, PluginError)
"""Bases that only gather other errors; their examples raise one of those."""


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "scripts" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ERRORS: dict[str, type[HarnessError]] = {kind.code: kind for kind in script("reference/codes.py").error_classes()}
WORDS = {"error": "An error", "warning": "A warning", "note": "A note"}


def example(page: Path) -> tuple[dict[str, Any], HarnessError | None, str]:
    """Runs the example of a page; what it leaves behind, what it raises, and what the page says it shows."""
    python, text = parsed(page.read_text(encoding="utf-8"))
    assert (python.language, text.language) == ("python", "text")
    code = compile("\n" * (python.line - 1) + python.body, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    left: dict[str, Any] = {"__name__": "page"}
    raised = None
    try:
        waits = eval(code, left)
        if waits is not None:
            anyio.run(lambda: waits)
    except HarnessError as error:
        raised = error
    return left, raised, text.body


def same(shown: str, actual: str) -> bool:
    """Is the text as shown, where ``...`` stands for any characters and lines may break anywhere?"""
    parts = [re.escape(" ".join(part.split(" "))) for part in " ".join(shown.split()).split("...")]
    return re.fullmatch(".*".join(parts), " ".join(actual.split())) is not None


def is_raised(kind: type[HarnessError]) -> bool:
    sources = [*ROOT.glob("harness_core/**/*.py"), *ROOT.glob("harness_plugins/*/src/**/*.py")]
    return any(re.search(rf"raise {kind.__name__}\b", source.read_text(encoding="utf-8")) for source in sources)


def check_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}\n"), "the title is the code"
    assert re.findall("^## (.+)$", text, re.MULTILINE) == ["Cause", "Example", "Remedy"]
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (page.parent / target).exists(), target


def test_codes_are_unique_and_every_page_has_one() -> None:
    kinds = script("reference/codes.py").error_classes()
    assert sorted(kind.code for kind in kinds) == sorted(ERRORS), "two classes have the same code"
    wanted = {REFERENCE / "errors" / f"{code}.md" for code in ERRORS}
    wanted |= {REFERENCE / "findings" / f"{code}.md" for code in CODES}
    assert set(CODE_PAGES) == wanted


@pytest.mark.parametrize("code", ERRORS)
def test_the_page_of_an_error_raises_it(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, kind = REFERENCE / "errors" / f"{code}.md", ERRORS[code]
    check_form(page)
    assert f"`{kind.__module__}.{kind.__name__}`" in page.read_text(encoding="utf-8").split("##")[0]
    monkeypatch.chdir(tmp_path)
    left, raised, text = example(page)
    if raised is None:  # the framework caught it and tells of it
        told: str = left["shown"]
        assert f"{kind.__name__}: " in told
        assert f"[{code}]" in told
    else:
        told = str(raised)
        assert type(raised) is kind or (kind in NEVER_RAISED and isinstance(raised, kind))
        assert told.endswith(f"[{raised.code}]")
    assert same(text, told), told


@pytest.mark.parametrize("kind", NEVER_RAISED)
def test_a_base_whose_page_says_so_is_never_raised(kind: type[HarnessError]) -> None:
    assert "Never raised itself" in (REFERENCE / "errors" / f"{kind.code}.md").read_text(encoding="utf-8")
    assert not is_raised(kind)
    assert is_raised(kind.__subclasses__()[0])


@pytest.mark.parametrize("code", CODES)
def test_the_page_of_a_finding_has_it_found(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, severity = REFERENCE / "findings" / f"{code}.md", CODES[code][0]
    check_form(page)
    assert f"{WORDS[severity.value]} of" in page.read_text(encoding="utf-8").split("##")[0]
    monkeypatch.chdir(tmp_path)
    left, raised, text = example(page)
    assert raised is None
    findings: list[Finding] = left["findings"]
    found = [each for each in findings if each.code == code]
    assert found, f"only found: {findings}"
    finding = found[0]
    scope = f" (scope {finding.scope})" if finding.scope else ""
    told = f"{severity.value} {code}{scope}: {finding.message} {finding.remedy}"
    assert same(text, told), told


def test_commands_say_the_code_to_people_and_to_programs() -> None:
    command = ["plugins", "--composition", "nowhere.toml"]
    told, said = CliRunner().invoke(app, command), CliRunner().invoke(app, [*command, "--json"])
    assert told.output.splitlines()[0].endswith("[composition]")
    assert json.loads(said.output)["error"]["code"] == "composition"


def test_what_is_shown_is_compared() -> None:
    assert same("a ... c\nd", "a b c d")
    assert not same("a c", "a b c")
    assert not same("a ...", "b")
