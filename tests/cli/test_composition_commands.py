"""The commands about the composition itself, in real processes: config show, schema, lock for each agent, switches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

BASE = """\
[prompt]
persona = "You are everybody's."
[plugins.workspace]
"""
FILE = """\
extends = "base.toml"
autoload = false

[prompt]
persona = "You help."
tool_order = ["search", "<unlisted-tools>"]

[plugins.deepseek.config]
base_url = { "$env" = "HARNESS_TEST_URL" }

[agents.reviewer]
persona = "You review."
deny_tools = ["workspace:search"]

[agents.reviewer.sections]
"workspace:how" = { exclude = true }
"""


def harness(*arguments: str, cwd: Path, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HARNESS_")} | environment
    done = subprocess.run(
        [sys.executable, "-m", "harness_core.cli", *arguments],
        cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def read(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "harness.toml").write_text(FILE)
    return tmp_path


def test_config_show_says_where_each_value_comes_from(folder: Path) -> None:
    secret = "https://user:password@models.example"
    shown = read(
        harness("config", "show", "--origin", "--json", "-p", "no:workspace", cwd=folder, HARNESS_TEST_URL=secret)
    )
    values = {each["path"]: each for each in shown["values"]}
    assert (Path(values["prompt.persona"]["file"]).name, values["prompt.persona"]["line"]) == ("harness.toml", 5)
    assert (Path(values["plugins.workspace"]["file"]).name, values["plugins.workspace"]["line"]) == ("base.toml", 3)
    assert values["plugins.deepseek.config.base_url"]["value"] == {"$env": "HARNESS_TEST_URL"}
    assert values["plugins.workspace.enabled"]["origin"] == "-p, or HARNESS_PLUGINS"
    text = harness("config", "show", "--origin", "--defaults", cwd=folder, HARNESS_TEST_URL=secret).stdout
    assert "plugins.deepseek.config.base_url = $HARNESS_TEST_URL (set)" in text
    assert "prompt.identity = true    default" in text
    assert "password" not in json.dumps(shown) + text
    unset = harness("config", "show", cwd=folder).stdout
    assert "$HARNESS_TEST_URL (not set)" in unset


def test_the_schema_knows_the_installed_plugins_and_accepts_the_file(folder: Path) -> None:
    import tomllib

    schema = read(harness("schema", cwd=folder))
    jsonschema.Draft202012Validator.check_schema(schema)
    plugins = schema["$defs"]["Composition"]["properties"]["plugins"]["properties"]
    assert {"workspace", "deepseek", "facts", "skills"} <= plugins.keys()
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(tomllib.loads(FILE))
    assert not validator.is_valid({"plugins": {"workspace": {"config": {"wriet": True}}}})
    harness("schema", "--out", "schema.json", cwd=folder)
    assert json.loads((folder / "schema.json").read_text()) == schema
    assert "cannot be written" in harness("schema", "--out", "absent/schema.json", cwd=folder, status=1).stderr


@pytest.mark.spec("UC-19")
def test_each_agent_has_a_prompt_and_a_lock_of_its_own(folder: Path) -> None:
    listed = read(
        harness(
            "prompt",
            "--scope",
            "reviewer",
            "--sections",
            "--json",
            cwd=folder,
            HARNESS_TEST_URL="https://models.example",
        )
    )
    assert [(part["name"], part["plugin"]) for part in listed["sections"]] == [
        ("harness:identity", "harness"), ("deployment:persona", "agent reviewer"),
    ]  # fmt: skip
    assert {"order", "bytes", "estimated_tokens"} <= listed["sections"][0].keys()
    assert [tool["name"] for tool in listed["tools"]] == ["list", "read"]
    harness("lock", cwd=folder, HARNESS_TEST_URL="https://secret.example")
    lock = json.loads((folder / "harness.lock.json").read_text())
    assert list(lock["scopes"]) == ["global", "reviewer"]
    assert "secret" not in json.dumps(lock)
    harness("lock", "--check", cwd=folder, HARNESS_TEST_URL="https://another.example")
    (folder / "harness.toml").write_text(FILE.replace("You review.", "You review with care."))
    changes = read(harness("diff", "--json", cwd=folder, status=1, HARNESS_TEST_URL="https://models.example"))[
        "changes"
    ]
    assert [(change["scope"], change["lane"], change["name"], change["breaks_prefix"]) for change in changes] == [
        ("reviewer", "sections", "deployment:persona", True)
    ]
    (folder / "harness.toml").write_text(FILE.replace("[prompt]", "[prompt]\nidentity = false"))
    shown = harness("diff", cwd=folder, status=1, HARNESS_TEST_URL="https://models.example").stdout
    assert shown.startswith("removed section 'harness:identity' of harness in scopes global, reviewer\n")
    assert shown.count("removed section") == 1


def test_check_looks_at_each_agent(folder: Path) -> None:
    harness("check", "--strict", cwd=folder, HARNESS_TEST_URL="https://models.example")
    (folder / "harness.toml").write_text(FILE.replace("You review.", "Review with `search` in {{city}}."))
    found = read(harness("check", "--json", cwd=folder, status=1, HARNESS_TEST_URL="https://models.example"))[
        "findings"
    ]
    assert {(each["code"], each["scope"]) for each in found} == {
        ("unknown-variable", "reviewer"), ("hidden-tool-named", "reviewer"),
    }  # fmt: skip
    assert "HARNESS_TEST_URL is not set" in harness("check", cwd=folder, status=1).stdout


def test_run_takes_an_agent_of_the_composition(folder: Path) -> None:
    done = read(
        harness("run", "--agent", "reviewer", "--json", "Hello.", cwd=folder, HARNESS_TEST_URL="https://models.example")
    )
    events = [json.loads(line) for line in Path(done["log"]).read_text().splitlines()[1:]]
    system = next(event["data"]["header"]["system"] for event in events if event["type"] == "request/header")
    assert "You review." in system
    assert "You help." not in system
    wrong = harness(
        "run", "--agent", "reviewr", "Hello.", cwd=folder, status=1, HARNESS_TEST_URL="https://models.example"
    ).stderr
    assert "Did you mean 'reviewer'?" in wrong


def test_a_variable_and_an_option_switch_plugins(folder: Path) -> None:
    def states(*arguments: str, **environment: str) -> dict[str, str]:
        listed = read(
            harness(
                "plugins", "--json", *arguments, cwd=folder, HARNESS_TEST_URL="https://models.example", **environment
            )
        )["plugins"]
        return {each["name"]: each["state"] for each in listed if each["name"] in ("workspace", "deepseek", "facts")}

    assert states() == {"workspace": "active", "deepseek": "active", "facts": "not loaded"}
    assert states(HARNESS_PLUGINS="") == {"workspace": "disabled", "deepseek": "disabled", "facts": "not loaded"}
    assert states(HARNESS_PLUGINS="workspace") == {"workspace": "active", "deepseek": "disabled", "facts": "not loaded"}
    assert states("-p", "no:deepseek", "-p", "facts") == {
        "workspace": "active",
        "deepseek": "disabled",
        "facts": "active",
    }


def test_an_agent_whose_tools_are_not_there_is_no_plugin_to_install(folder: Path) -> None:
    (folder / "harness.toml").write_text('autoload = false\n[agents.reviewer]\ndeny_tools = ["search"]\n')
    listed = read(harness("plugins", "--json", cwd=folder))["plugins"][0]
    assert (listed["name"], listed["state"]) == ("agent reviewer", "failed")
    assert "agents.reviewer.deny_tools" in listed["why"]


@pytest.mark.spec("UC-20")
def test_plugins_says_how_to_get_back_what_is_not_active(folder: Path) -> None:
    (folder / "harness.toml").write_text(
        """autoload = false
[plugins.workspace]
enabled = false
[plugins.deepseek]
on_error = "skip"
[plugins.deepseek.config]
base_url = "no address"
[agents.writer.plugins.absent]
[plugins.fact]
"""
    )
    text = harness("plugins", cwd=folder).stdout
    listed = {each["name"]: each for each in read(harness("plugins", "--json", cwd=folder))["plugins"]}
    told = {
        "workspace": ("disabled", "Set enabled = true"),
        "deepseek": ("failed", "it is tried again at the next start"),
        "facts": ("not loaded", "-p NAME"),
        "absent": ("not installed", "Install the distribution"),
        "fact": ("not installed", "Did you mean 'facts'?"),
    }
    for name, (state, remedy) in told.items():
        assert listed[name]["state"] == state
        assert remedy in listed[name]["remedy"]
        assert listed[name]["remedy"] in text
        assert listed[name]["listed"] is (name != "facts")
    assert "remedy" not in listed["offline-model"]
