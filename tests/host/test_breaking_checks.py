"""Checks, locks and switches at their edges: findings rather than errors, one plugin rather than two."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from harness_core import HarnessError, PluginContext, hookimpl
from harness_core.cli._sarif import as_sarif
from harness_core.cli.config import _shown
from harness_core.errors import CompositionError
from harness_core.host import PluginSource
from harness_core.host.check_composition import check_composition, composition_findings
from harness_core.host.composition import AgentTable, PluginTable
from harness_core.host.documents import collect
from harness_core.host.findings import Finding
from harness_core.host.lock import read_lock
from harness_core.host.reading import selected, structured
from tests.cli.test_composition_commands import harness
from tests.compositions._plugins import source
from tests.host.test_applying import composed, harness_of, sources

# --- checks -------------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_scope_of_which_no_plugin_is_installed_is_no_reason_to_stop() -> None:
    findings = await check_composition(composed(absent=PluginTable(scope="shed")), Path(), installed=sources([]))
    assert [finding.code for finding in findings] == ["not-installed"]


@pytest.mark.anyio
async def test_a_module_that_ends_the_program_is_a_finding() -> None:
    def load() -> Any:
        raise SystemExit(3)

    scripted = PluginSource(name="script", distribution="dist-script", version="1", entry_point="script", load=load)
    findings = await check_composition(composed(script=PluginTable()), Path(), installed=[scripted])
    assert [finding.code for finding in findings] == ["plugin-failed"]
    assert "SystemExit: 3" in findings[0].message
    with pytest.raises(HarnessError, match="could not be imported"):
        async with harness_of(composed(script=PluginTable()), [scripted]):
            pass


# --- SARIF --------------------------------------------------------------------------------------------------------------


def results(findings: list[Finding]) -> list[dict[str, Any]]:
    """The results of a report, whose shape is looked at on the way."""
    report = json.loads(json.dumps(as_sarif(findings)))
    assert report["version"] == "2.1.0"
    [run] = report["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        for location in result.get("locations", ()):
            if "physicalLocation" in location:
                assert location["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1
                assert " " not in location["physicalLocation"]["artifactLocation"]["uri"]
    found: list[dict[str, Any]] = run["results"]
    return found


def test_places_in_sarif_are_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    for file in (here / "mit ü und #.toml", tmp_path / "there.toml"):
        file.write_text("prompt = 5")
    (here / "harness.toml").write_text('\nextends = "odd"\n')
    findings = []
    for name in ("mit ü und #.toml", "../there.toml", "harness.toml"):
        with pytest.raises(CompositionError) as caught:
            structured(collect(Path(name), lambda group: [source("odd", lambda: {"prompt": 5})]))
        findings += composition_findings(caught.value)
    inside, outside, preset = (result["locations"][0] for result in results(findings))
    uri = inside["physicalLocation"]["artifactLocation"]["uri"]
    assert (unquote(uri), uri.isascii(), "#" in uri) == ("mit ü und #.toml", True, False)
    assert inside["physicalLocation"]["region"] == {"startLine": 1}
    assert outside["physicalLocation"]["artifactLocation"]["uri"] == (tmp_path / "there.toml").as_uri()
    assert preset == {"logicalLocations": [{"name": "preset 'odd' (dist-odd 1.0)"}]}


# --- values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"$env": 5}, '{"$env": 5}'),
        ({"$env": "A\0=B"}, "$A\0=B (not set)"),
        (float("nan"), '"NaN"'),
        ([float("inf"), 1.5], '["Infinity", 1.5]'),
        (date(1979, 5, 27), '"1979-05-27"'),
    ],
)
def test_values_that_json_has_not_are_shown_as_json_all_the_same(value: Any, shown: str) -> None:
    found = _shown(value)
    assert found["shown"] == shown
    json.dumps(found, allow_nan=False)


# --- locks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        "\ufeff{}",
        '{"format": 1',
        '{"format": 0, "plugins": [], "scopes": {}}',
        '{"format": 1}',
        '{"format": 1, "plugins": [], "scopes": []}',
        '{"format": 1, "plugins": {}, "scopes": {}}',
        '{"format": 1, "plugins": [5], "scopes": {}}',
        '{"format": 1, "plugins": [{"name": 5}], "scopes": {}}',
        '{"format": 1, "plugins": [], "scopes": {"global": 5}}',
        '{"format": 1, "plugins": [], "scopes": {"global": {"sections": 5}}}',
        '{"format": 1, "plugins": [], "scopes": {"global": {"tools": [{}]}}}',
        "<<<<<<< ours",
    ],
)
def test_what_is_no_lock_is_refused(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "harness.lock.json").write_text(text)
    with pytest.raises(CompositionError, match="cannot be read|no lock of format") as caught:
        read_lock(file)
    assert caught.value.file == str(file)


@pytest.mark.parametrize("kind", ["a folder", "bytes"])
def test_a_lock_that_cannot_be_read_is_refused(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "harness.lock.json"
    file.mkdir() if kind == "a folder" else file.write_bytes(b"\xff")
    with pytest.raises(CompositionError, match="cannot be read"):
        read_lock(file)


# --- switches -----------------------------------------------------------------------------------------------------------


class Counts:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("counts:s", "x", order=1)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("variable", "switched", "active"),
    [
        ("counts", (), ["own"]),
        ("own", (), ["own"]),
        (None, ("counts",), ["own"]),
        (None, ("no:counts",), []),
        (None, ("no:counts", "counts"), ["counts"]),
        ("", ("counts",), ["own"]),
        ("", ("own",), ["own"]),
        ("", (), []),
    ],
)
async def test_a_plugin_under_another_name_is_switched_rather_than_doubled(
    variable: str | None, switched: tuple[str, ...], active: list[str]
) -> None:
    installed = [PluginSource(name="counts", load=lambda: Counts)]
    written = composed(own=PluginTable(plugin="counts"))
    async with harness_of(selected(written, variable, switched), installed) as harness:
        assert [activation.name for activation in harness.activations][1:] == active


@pytest.mark.anyio
async def test_an_agents_own_plugin_is_switched_where_it_is() -> None:
    installed = [PluginSource(name="counts", load=lambda: Counts)]
    written = composed()
    written.agents["writer"] = AgentTable(plugins={"counts": PluginTable(enabled=False)})
    async with harness_of(selected(written, None, ("counts",)), installed) as harness:
        scopes = [activation.scope.name for activation in harness.activations if activation.name == "counts"]
        assert scopes == ["writer"]


# --- what a terminal, and a file, may have --------------------------------------------------------------------------------


def test_odd_names_are_shown_and_written_as_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"x\xff.toml")
    (tmp_path / name).write_text('autoload = false\n[agents."a\\u001b[31mred"]\nfoo = 1\n')
    arguments = ("check", "--composition", name, "--sarif", "report.json")
    shown = harness(*arguments, cwd=tmp_path, status=1, PYTHONIOENCODING="utf-8:strict").stdout
    assert r"agents.a\x1b[31mred.foo" in shown
    assert "\x1b" not in shown
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    location = report["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "x%FF.toml"}, "region": {"startLine": 3}}
    found = harness(*arguments, "--json", cwd=tmp_path, status=1, PYTHONIOENCODING="utf-8:strict").stdout
    assert json.loads(found)["findings"][0]["line"] == 3
    # Also as an error of a command that cannot go on.
    assert r"a\x1b[31mred" in harness("prompt", *arguments[1:3], cwd=tmp_path, status=1).stderr


def test_a_composition_may_come_through_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.toml")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(pipe.write_text, "autoload = false\n")
        assert harness("config", "show", "--composition", str(pipe), cwd=tmp_path).stdout == "autoload = false\n"
        writing.result(10)


def test_a_difference_shows_lines_that_begin_with_dashes(tmp_path: Path) -> None:
    (file := tmp_path / "harness.toml").write_text('autoload = false\nprompt.persona = "A\\n-- b"\n')
    harness("lock", cwd=tmp_path)
    file.write_text('autoload = false\nprompt.persona = "A\\n++ c"\n')
    assert "--- b\n    +++ c\n" in harness("diff", cwd=tmp_path, status=1).stdout
