"""Every page is true: its Python runs, its TOML parses, its links lead somewhere, its tables agree with the code."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import anyio
import pytest

from harness_core import errors
from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host.composition import read_composition
from harness_core.host.findings import CODES

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("harness_plugins/*/README.md")])
SHORT = {page: str(page.relative_to(ROOT)) for page in PAGES}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, each with the line on which it begins."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)) + 1, match[1]) for match in found]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=SHORT.get)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for line, code in blocks(page, "python"):
        made = compile("\n" * (line - 1) + code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waits = eval(made, namespace)
        if waits is not None:
            anyio.run(lambda waits=waits: waits)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=SHORT.get)
def test_the_toml_of_a_page_parses(page: Path) -> None:
    for _, text in blocks(page, "toml"):
        tomllib.loads(text)


def test_the_composition_of_the_how_to_is_one(tmp_path: Path) -> None:
    file = tmp_path / "harness.toml"
    file.write_text(blocks(ROOT / "docs/how-to/compose.md", "toml")[0][1])
    assert read_composition(file).outermost == ["policy"]


@pytest.mark.parametrize("page", PAGES, ids=SHORT.get)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_page_of_errors_lists_every_class_and_code() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert inspect.isclass(kind)
        assert f"| `{kind.code}` | `{name}` |" in page


def test_the_page_of_hooks_lists_every_hook() -> None:
    page = (ROOT / "docs/reference/hooks.md").read_text(encoding="utf-8")
    for hook in ("harness_setup", *WATERFALLS, *OBSERVERS):
        assert f"| `{hook}` |" in page


def test_the_page_of_findings_lists_every_code_with_its_severity() -> None:
    page = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
    for code, (severity, meaning) in CODES.items():
        assert f"| `{code}` | {severity.value} | {meaning} |" in page
