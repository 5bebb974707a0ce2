"""Every page is true: its Python runs, its TOML fits, its links lead somewhere, its tables agree with the code."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import attrs
import click
import pytest

from harness_core.cli._app import app
from harness_core.hooks.specs import HookSpecs
from harness_core.host.composition import Composition
from harness_core.host.config import structure_config
from harness_core.host.discovery import discover
from harness_core.host.reading import read_composition
from harness_core.host.references import is_reference
from tests.docs._pages import PAGES, ROOT, SHORT, Block, blocks, needed, parsed, to_check, with_blocks

# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=SHORT.get)
def test_no_block_of_a_page_is_passed_over_in_silence(page: Path) -> None:
    for block in blocks(page):
        assert block.problem is None, f"{page}:{block.line}: {block.problem}"


@pytest.mark.parametrize(
    "text", ["  ```python\n  x\n  ```\n", "~~~\n~~~\n", "```\n```\n", "```python\nx\n", '```python linenums="1"\n```\n']
)
def test_what_cannot_be_tested_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parsed(text)


def test_a_block_says_what_becomes_of_it() -> None:
    text = '```toml title="a.toml"\nx = 1\n```\n<!-- not tested: needs a network -->\n```sh\nls\n```\n```sh\nls\n```\n'
    shown, excused, forgotten = parsed(text)
    assert (shown, shown.problem, excused.problem) == (Block("toml", "x = 1\n", 2, "a.toml"), None, None)
    file, *_ = parsed(f"{text}```console\n$ harness check\n```\n")
    assert file.written
    assert "say why" in (forgotten.problem or "")


@pytest.mark.parametrize("page", with_blocks("python"), ids=SHORT.get)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in needed(page):
        pytest.importorskip(module, reason="requirements/loops.txt is installed for one Python only")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    with mock.patch.dict(os.environ):  # a page may set variables, for itself alone
        for block in to_check(page, "python"):
            shifted = "\n" * (block.line - 1) + block.body
            made = compile(shifted, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waits = eval(made, namespace)
            if waits is not None:
                anyio.run(lambda waits=waits: waits)


def test_json_on_pages_parses() -> None:
    for page in with_blocks("json"):
        for block in to_check(page, "json"):
            json.loads(block.body)


COMPOSITION = {field.name for field in attrs.fields(Composition)}
PROJECT = {"project", "build-system", "tool"}


@pytest.mark.parametrize("page", with_blocks("toml"), ids=SHORT.get)
def test_the_toml_of_a_page_is_what_is_read(page: Path, tmp_path: Path) -> None:
    for block in to_check(page, "toml"):
        data = tomllib.loads(block.body)
        where = f"{page}:{block.line}"
        if data.keys() <= PROJECT:
            continue
        assert data.keys() <= COMPOSITION, f"{where}: neither a composition nor a pyproject.toml"
        file = tmp_path / "harness.toml"
        file.write_text(block.body, encoding="utf-8")
        check_configurations(read_composition(file), where)


def check_configurations(composition: Composition, where: str) -> None:
    """What a composition sets of installed plugins is something that they take; what it leaves out does not matter."""
    installed = {source.name: source for source in discover()}
    for name, table in composition.plugins.items():
        source = installed.get(table.plugin or name)
        kind = getattr(source.load(), "Config", None) if source is not None else None
        if kind is None:
            continue
        structured = structure_config(_said(table.config), kind)
        problems = (
            [each for each in structured if "is missing" not in each.problem] if isinstance(structured, list) else []
        )
        assert not problems, f"{where}: plugin {name!r}: {problems}"


def test_a_setting_that_a_plugin_does_not_take_is_found(tmp_path: Path) -> None:
    file = tmp_path / "harness.toml"
    file.write_text('[plugins.retry.config]\nattemps = 5\njitter = { "$env" = "JITTER" }\n', encoding="utf-8")
    with pytest.raises(AssertionError, match="did you mean 'attempts'"):
        check_configurations(read_composition(file), "here")


def _said(config: Any) -> Any:
    """The settings whose values stand in the file itself; others stand in the environment."""
    if not isinstance(config, dict):
        return config
    return {name: _said(value) for name, value in config.items() if not is_reference(value)}


def test_the_composition_of_the_how_to_is_one(tmp_path: Path) -> None:
    file = tmp_path / "harness.toml"
    file.write_text(to_check(ROOT / "docs/how-to/compose.md", "toml")[0].body, encoding="utf-8")
    assert read_composition(file).outermost == ["retry"]


# --- commands ---------------------------------------------------------------------------------------------------------


def commands(page: Path) -> list[str]:
    """The `harness` commands that a page mentions in its text, and in blocks that are not tested."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = [" ".join(each.split()) for each in re.findall(r"`(harness [a-z][^`]*)`", text)]
    for block in parsed(page.read_text(encoding="utf-8")):
        if block.language == "sh":
            lines = re.sub(r"\\\n", " ", block.body).splitlines()
            found += [re.split(r"[|&;>#]", line.removeprefix("$ "))[0] for line in lines if "harness " in line]
    return [each.strip() for each in found if each.strip().startswith("harness ")]


def checked_command(line: str) -> str | None:
    """What is wrong with a command, as far as its names tell."""
    command: click.Command = app
    for word in shlex.split(line)[1:]:
        if word.startswith("-") and word != "-":
            name = word.partition("=")[0]
            options = {
                option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            if name not in {*options, "-h", "--help"}:
                return f"{line!r}: {command.name} has no option {name}"
        elif isinstance(command, click.Group) and word.islower():
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"{line!r}: there is no command {word!r}"
            command = found
    return None


@pytest.mark.parametrize("page", PAGES, ids=SHORT.get)
def test_the_commands_of_a_page_exist_with_their_options(page: Path) -> None:
    assert [problem for line in commands(page) if (problem := checked_command(line))] == []


def test_a_command_that_does_not_exist_is_found() -> None:
    assert checked_command("harness log show SESSION --json") is None
    assert "no option --jsn" in (checked_command("harness log show --jsn") or "")
    assert "no command 'lgo'" in (checked_command("harness lgo") or "")


# --- links ------------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(<?([^)>\s]+)>?(?: \"[^\"]*\")?\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), f"{target}: no such heading"


# --- tables -----------------------------------------------------------------------------------------------------------


def test_the_page_of_hooks_lists_every_hook_with_its_arguments() -> None:
    page = (ROOT / "docs/reference/hooks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|", page, re.MULTILINE)
    listed = {hook: re.findall(r"`(\w+)`", arguments) for hook, arguments in rows}
    hooks = {name: function for name, function in vars(HookSpecs).items() if not name.startswith("_")}
    assert listed == {name: list(inspect.signature(function).parameters)[1:] for name, function in hooks.items()}


def test_the_page_of_hooks_gives_the_types_of_all_arguments() -> None:
    page = (ROOT / "docs/reference/hooks.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)

    def types(source: str, name: str) -> dict[str, dict[str, str]]:
        [found] = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef) and each.name == name]
        return {
            each.name: {arg.arg: ast.unparse(arg.annotation) for arg in each.args.args if arg.annotation is not None}
            for each in found.body
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        }

    specified = types(Path(inspect.getsourcefile(HookSpecs) or "").read_text(encoding="utf-8"), "HookSpecs")
    specified["harness_setup"] = {"ctx": "PluginContext"}  # a type of a floor above the specifications
    assert types(block, "Everything") == specified
