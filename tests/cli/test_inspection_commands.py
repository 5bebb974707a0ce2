"""``hooks``, ``trace``, ``explain``, ``log`` and ``cache``, as processes, with plugins that entry points bring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness_core.session import FileStore, read_log

PLUGINS = """
from harness_core import Enter, Section, ToolSchema, hookimpl


class Rules:
    @hookimpl
    def harness_setup(self, ctx):
        ctx.prompt.section("rules:how", "Be brief in {{city}}.", order=10)
        ctx.prompt.variable("city", lambda _: "Paris")
        ctx.prompt.context("rules:sky", lambda c: "blue" if (c.turn or 1) < 2 else "grey", order=1)
        ctx.tools.register(ToolSchema("look", "Look around."), lambda call: "nothing")

    @hookimpl(tryfirst=True)
    async def agent_pre_step(self, call_next):
        return await call_next()


class Meddler:
    @hookimpl
    async def system_prompt_assemble(self, assembly, context, call_next):
        result = await call_next()
        if (context.turn or 1) > 1:
            result.replace_section(result.section("rules:how").with_text("Be loud in {{city}}."))
        return result

    @hookimpl
    def agent_pre_step(self, step):
        return Enter(m for m in step.messages if m.text != "spam")


class Adder:
    @hookimpl
    def system_prompt_assemble(self, assembly):
        assembly.sections.append(Section("adder:note", "Mind the step.", order=40))
        assembly.variables["shade"] = "dark"


class Dropper:
    @hookimpl
    def system_prompt_assemble(self, assembly):
        assembly.sections[:] = [each for each in assembly.sections if each.order < 30]


class Failing:
    @hookimpl
    def system_prompt_assemble(self, assembly):
        raise LookupError("no map")
"""

EXTRAS = ("Meddler", "Failing", "Adder", "Dropper")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with plugins on the path, as if they had been installed from two distributions."""
    site = tmp_path / "site"
    for name, version, entries in (
        ("kitchen-rules", "1.5", "rules = kitchen_plugins:Rules"),
        ("kitchen-extras", "0.3", "\n".join(f"{each.lower()} = kitchen_plugins:{each}" for each in EXTRAS)),
    ):
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[harness.plugins]\n{entries}\n")
    (site / "kitchen_plugins.py").write_text(PLUGINS)
    work = tmp_path / "work"
    work.mkdir()
    (work / "harness.toml").write_text("autoload = false\n[plugins.rules]\n[plugins.meddler]\n")
    return work


def harness(*arguments: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "harness_core.cli", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "200", "PYTHONPATH": str(cwd.parent / "site")},
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def told(*arguments: str, cwd: Path, status: int = 0) -> Any:
    return json.loads(harness(*arguments, "--json", cwd=cwd, status=status).stdout)


@pytest.fixture
def session(folder: Path) -> Path:
    """Two turns; the listener changes the section in the second one."""
    for prompt in ("hello", "again"):
        harness("run", prompt, "--session", "s1", cwd=folder)
    return folder


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_lists_who_is_called_in_which_order_and_why(folder: Path) -> None:
    (order,) = told("hooks", "agent_pre_step", cwd=folder)["hooks"]
    assert [(each["plugin"], each["distribution"], each["version"]) for each in order["listeners"]] == [
        ("rules", "kitchen-rules", "1.5"),
        ("meddler", "kitchen-extras", "0.3"),
    ]
    text = harness("hooks", cwd=folder).stdout
    for said in ("system_prompt_assemble", "agent_pre_step", "tryfirst", "kitchen-rules 1.5", "kitchen_plugins.py:"):
        assert said in text


def test_hooks_lists_filtered_listeners_and_compares_scopes_and_compositions(folder: Path) -> None:
    (folder / "scoped.toml").write_text('autoload = false\n[plugins.rules]\n[plugins.meddler]\nscope = "team"\n')
    scoped = ("--composition", "scoped.toml")
    (order,) = told("hooks", "agent_pre_step", *scoped, cwd=folder)["hooks"]
    assert [(each["plugin"], "team" in each["reason"]) for each in order["filtered"]] == [("meddler", True)]
    assert "not called: registered in scope 'team'" in harness("hooks", *scoped, cwd=folder).stdout
    sides = told("hooks", "agent_pre_step", *scoped, "--scope", "global", "--scope", "team", cwd=folder)
    assert [(row["plugin"], row["left"], row["right"]) for row in sides["hooks"][0]["rows"]] == [
        ("rules", 1, 1),
        ("meddler", None, 2),
    ]
    without = told("hooks", "agent_pre_step", "--without", "rules", cwd=folder)["hooks"][0]
    assert [(row["plugin"], row["left"], row["right"]) for row in without["rows"]] == [
        ("rules", 1, None),
        ("meddler", 2, 1),
    ]
    against = told("hooks", "--against", "scoped.toml", cwd=folder)["hooks"]
    assert {each["hook"]: each["same"] for each in against} == {
        "system_prompt_assemble": False,
        "agent_pre_step": False,
    }
    assert "only with it" in harness("hooks", "--without", "rules", cwd=folder).stdout


def test_hooks_refuses_what_it_does_not_know(folder: Path) -> None:
    assert "Did you mean 'agent_pre_step'" in harness("hooks", "agent_pre_stp", cwd=folder, status=2).stderr
    harness("hooks", "--scope", "a", "--scope", "b", "--without", "rules", cwd=folder, status=2)


# --- trace ------------------------------------------------------------------------------------------------------------


def test_trace_shows_an_assembly_and_a_pre_step(folder: Path) -> None:
    found = told("trace", "spam", cwd=folder)
    assert [run["plugin"] for run in found["assembly"]["waterfall"]["runs"]] == ["meddler"]
    meddler = found["pre_step"]["runs"][1]
    assert (meddler["plugin"], meddler["answered"]) == ("meddler", True)
    assert [(each["kind"], each["element"]["text"]) for each in meddler["inward"]] == [("removed", "spam")]
    assert {run["name"] for run in found["assembly"]["providers"]} >= {"city", "rules:sky"}
    text = harness("trace", "spam", cwd=folder).stdout
    for said in (
        "meddler (kitchen-extras 0.3)",
        "answered: nobody further in was asked",
        "a first snapshot: rules:sky (rules)",
    ):
        assert said in text


@pytest.mark.spec("UC-13")
def test_trace_goes_on_with_a_session_and_says_which_context_is_new(session: Path) -> None:
    before = (session / ".harness" / "sessions" / "s1.jsonl").read_bytes()
    (session / ".harness" / "sessions" / "s2.jsonl").write_bytes(before)
    first = read_log(FileStore(session / ".harness" / "sessions"), "s1").events
    assert sum(event.type == "turn/end" for event in first) == 2
    found = told("trace", "more", "--session", "s1", cwd=session)
    assert found["assembly"]["subject"]["turn"] == 3
    changes = found["assembly"]["waterfall"]["runs"][0]["outward"]
    assert changes[0]["fields"]["text"] == {"before": "Be brief in {{city}}.", "after": "Be loud in {{city}}."}
    assert (session / ".harness" / "sessions" / "s1.jsonl").read_bytes() == before, "nothing was recorded"


def test_trace_of_a_failing_assembly_says_who_and_exits_with_1(folder: Path) -> None:
    (folder / "failing.toml").write_text("autoload = false\n[plugins.rules]\n[plugins.failing]\n")
    done = harness("trace", "--composition", "failing.toml", cwd=folder, status=1)
    for said in ("LookupError: no map", "failing", "kitchen-extras 0.3", "raised in the listener of"):
        assert said in done.stdout
    found = told("trace", "--composition", "failing.toml", cwd=folder, status=1)
    assert found["assembly"]["failure"]["type"] == "LookupError"


def test_trace_writes_a_page(folder: Path) -> None:
    harness("trace", "hi", "--html", "trace.html", cwd=folder)
    page = (folder / "trace.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "kitchen-extras" in page


# --- explain ----------------------------------------------------------------------------------------------------------


def test_explain_says_who_is_behind_a_name_or_a_text(folder: Path) -> None:
    (section,) = told("explain", "rules:how", cwd=folder)["elements"]
    assert (section["kind"], section["registrations"][0]["version"]) == ("section", "1.5")
    (found,) = told("explain", "in Paris", cwd=folder)["texts"]
    assert [(piece["text"], piece["variable"]) for piece in found["pieces"]] == [("in ", None), ("Paris", "city")]
    text = harness("explain", "in Paris", cwd=folder).stdout
    assert "the value of {{city}} from rules (kitchen-rules 1.5)" in text
    assert "kitchen_plugins.py:9" in text
    assert "registered by rules" in harness("explain", "look", cwd=folder).stdout


def test_explain_exits_with_1_when_there_is_nothing(folder: Path) -> None:
    assert "Nothing is called 'nowhere'" in harness("explain", "nowhere", cwd=folder, status=1).stdout
    harness("explain", "x", "--request", "1", cwd=folder, status=2)


def test_explain_names_the_nearest_where_there_is_nothing(folder: Path) -> None:
    assert "Did you mean 'rules:how'?" in harness("explain", "rules:hw", cwd=folder, status=1).stdout
    assert "Did you mean 'look'?" in harness("explain", "lok", cwd=folder, status=1).stdout


def test_what_a_listener_adds_is_its_own_wherever_it_is_shown(folder: Path) -> None:
    (folder / "harness.toml").write_text("autoload = false\n[plugins.rules]\n[plugins.dropper]\n[plugins.adder]\n")
    lost = harness("explain", "Mind the", cwd=folder, status=1).stdout
    assert "The model does not see 'Mind the'. It was in:" in lost
    assert "section adder:note: not there; removed by plugin 'dropper' (kitchen-extras 0.3)" in lost
    (folder / "harness.toml").write_text(
        'autoload = false\n[plugins.rules]\n[plugins.dropper]\nafter = ["adder"]\n[plugins.adder]\n'
    )
    assert "added by adder (kitchen-extras 0.3) in system_" in harness("explain", "Mind the", cwd=folder).stdout
    parts = told("prompt", cwd=folder)
    note = parts["sections"][-1]
    assert (note["plugin"], note["by"]) == ("adder", "plugin 'adder' (kitchen-extras 0.3), in system_prompt_assemble")
    assert [(each["name"], each["plugin"]) for each in parts["variables"]] == [("city", "rules"), ("shade", "adder")]
    harness("lock", cwd=folder)
    (locked,) = json.loads((folder / "harness.lock.json").read_text())["scopes"].values()
    assert [(each["name"], each["plugin"]) for each in locked["sections"]][-1] == ("adder:note", "adder")
    harness("run", "--session", "s", "Hello", cwd=folder)
    logged = harness("explain", "adder:note", "--log", "s", cwd=folder).stdout
    assert "system: adder:note, added by adder (kitchen-extras 0.3) in system_prompt_assemble" in logged
    assert "Did you mean 'adder:note'?" in harness("explain", "adder:not", "--log", "s", cwd=folder, status=1).stdout


def test_explain_of_a_log_needs_no_plugins(session: Path) -> None:
    (session / "empty.toml").write_text("autoload = false\n")
    offline = ("--composition", "empty.toml", "--log", "s1")
    (first,) = told("explain", "rules:how", *offline, "--request", "1", cwd=session)["found"]
    assert (first["owner"]["plugin"], "changed_by" in first) == ("rules", False)
    (last,) = told("explain", "rules:how", *offline, cwd=session)["found"]
    assert (last["changed_by"]["plugin"], last["changed_by"]["version"]) == ("meddler", "0.3")
    assert "changed by meddler (kitchen-extras 0.3)" in harness("explain", "Be loud", *offline, cwd=session).stdout
    assert "variable in section rules:how" in harness("explain", "Paris", *offline, cwd=session).stdout
    harness("explain", "nowhere", *offline, cwd=session, status=1)


# --- log --------------------------------------------------------------------------------------------------------------


def test_log_lists_shows_and_verifies(session: Path) -> None:
    assert [each["id"] for each in told("log", "list", cwd=session)] == ["s1"]
    lines = harness("log", "show", "s1", cwd=session).stdout.splitlines()
    assert "turn/start" in lines[1]
    assert any("changed: rules:sky (rules)" in line for line in lines)
    assert not any("assistant/chunk" in line for line in lines)
    assert "assistant/chunk" in harness("log", "show", "s1", "--chunks", cwd=session).stdout
    assert told("log", "show", "s1", cwd=session)[1]["type"] == "turn/start"
    request = harness("log", "show", "s1", "--request", "1", cwd=session).stdout
    assert "Be brief in Paris." in request
    assert "rules:how (rules)" in request
    checked = told("log", "verify", "s1", cwd=session)
    assert (checked["requests"], checked["ok"]) == (2, True)
    by_path = session / ".harness" / "sessions" / "s1.jsonl"
    assert "2 requests, each as it was recorded" in harness("log", "verify", str(by_path), cwd=session).stdout


def test_log_verify_finds_a_request_that_is_not_what_was_sent(session: Path) -> None:
    path = session / ".harness" / "sessions" / "s1.jsonl"
    text = path.read_text()
    assert text.count('"text":"hello"') >= 2  # in the inbox, and as the message that entered
    path.write_text(text.replace('"text":"hello"', '"text":"hullo"'))
    done = harness("log", "verify", "s1", cwd=session, status=1)
    assert "turn 1, step 1" in done.stdout
    assert not told("log", "verify", "s1", cwd=session, status=1)["ok"]
    path.write_text(text[:-40])
    harness("log", "show", "s1", cwd=session)  # a torn end is no damage


def test_log_compares_steps_lane_by_lane(session: Path) -> None:
    found = told("log", "compare", "s1", "--request", "1", "--request", "2", cwd=session)
    lanes = {lane["lane"]: lane for lane in found["lanes"]}
    (change,) = lanes["system"]["changes"]
    assert (change["name"], change["owner"]["plugin"]) == ("rules:how", "meddler")
    (sky,) = lanes["context"]["changes"]
    assert (sky["name"], sky["owner"]["plugin"], sky["fields"]["text"]) == (
        "rules:sky",
        "rules",
        {"before": "blue", "after": "grey"},
    )
    assert lanes["tools"]["same"]
    text = harness("log", "compare", "s1", cwd=session).stdout
    assert "[-brief-]{+loud+}" in text
    harness("run", "hello", "--session", "s2", cwd=session)
    assert told("log", "compare", "s1", "s2", cwd=session)["sides"][1]["session"] == "s2"
    harness("log", "compare", "s1", *["--request", "1"] * 3, cwd=session, status=2)


def test_log_export_gives_neutral_json_and_says_where_a_vendors_form_is_not_to_be_had(session: Path) -> None:
    neutral = told("log", "export", "s1", "--as", "neutral", cwd=session)
    assert neutral["header"]["config"]["provider"] == "offline"
    done = harness("log", "export", "s1", cwd=session, status=1)
    assert "cannot show its requests" in done.stderr
    assert "--as neutral" in done.stderr


def test_log_export_gives_the_vendors_json_and_a_curl_command_without_the_key(session: Path) -> None:
    pytest.importorskip("harness_openai", reason="the OpenAI adapters are not installed")
    (session / "openai.toml").write_text(
        textwrap.dedent(
            """
            autoload = false
            [model]
            provider = "openai-compatible"
            model = "m1"
            [plugins.rules]
            [plugins.openai-compatible.config]
            base_url = "http://127.0.0.1:9/v1"
            api_key_env = "KITCHEN_KEY"
            [plugins.openai-compatible.config.headers]
            X-Room = "not to be shown"
            """
        )
    )
    use = ("--composition", "openai.toml")
    os.environ["KITCHEN_KEY"] = "sk-very-secret"
    try:
        harness("run", "hello", "--session", "s3", *use, cwd=session, status=1)  # nobody listens there
        body = json.loads(harness("log", "export", "s3", *use, cwd=session).stdout)
        command = harness("log", "export", "s3", "--as", "curl", *use, cwd=session).stdout
    finally:
        del os.environ["KITCHEN_KEY"]
    assert body["model"] == "m1"
    assert body["messages"][0] == {"role": "system", "content": body["messages"][0]["content"]}
    assert "Be brief in Paris." in body["messages"][0]["content"]
    assert command.startswith("curl -sS -N http://127.0.0.1:9/v1/chat/completions")
    assert '-H "authorization: Bearer $KITCHEN_KEY"' in command
    assert "sk-very-secret" not in command
    assert "not to be shown" not in command


def test_log_follow_shows_what_another_process_records(session: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(session.parent / "site")}
    follower: Any = subprocess.Popen(
        [sys.executable, "-m", "harness_core.cli", "log", "follow", "s1"],
        cwd=session,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        lines = iter(follower.stdout.readline, "")
        assert any("turn/end" in line and "turn 2" in line for line in lines)
        harness("run", "once more", "--session", "s1", cwd=session)
        assert any("once more" in line for line in lines)
        assert any("turn/end" in line and "turn 3" in line for line in lines)
    finally:
        follower.terminate()
        follower.communicate()
    assert "turn 3" in harness("log", "follow", "s1", "--once", cwd=session).stdout
    harness("log", "follow", "nowhere", cwd=session, status=1)


# --- cache ------------------------------------------------------------------------------------------------------------


def test_cache_names_who_broke_the_prefix_and_writes_a_page(session: Path) -> None:
    found = told("cache", "s1", "--price-input", "2", "--price-cached", "0.5", cwd=session)
    (broken,) = [each for each in found["requests"] if each["break"]]
    cause = broken["break"]["cause"]
    assert (cause["kind"], cause["name"], cause["plugin"], cause["version"]) == (
        "section",
        "rules:how",
        "meddler",
        "0.3",
    )
    assert cause["registered_by"]["plugin"] == "rules"
    assert found["ranking"][0]["plugin"] == "meddler"
    text = harness("cache", "s1", "--html", "cache.html", cwd=session).stdout
    assert (
        "section 'rules:how' changed by meddler (kitchen-extras 0.3), registered by rules (kitchen-rules 1.5)" in text
    )
    page = (session / "cache.html").read_text()
    assert "rules:how" in page
    harness("log", "show", "s1", "--request", "1", "--html", "request.html", cwd=session)
    assert "Be brief in " in (session / "request.html").read_text()


@pytest.mark.spec("UC-29")
def test_cache_takes_units_and_orders_for_each_provider(session: Path) -> None:
    option = ("--provider", "offline:unit=64,order=system-tools-messages")
    found = told("cache", "s1", *option, cwd=session)
    assert found["models"]["offline"] == {"unit": 64, "minimum": 0, "order": ["system", "tools", "messages"]}
    assert all(each["predicted_cached_tokens"] % 64 == 0 for each in found["requests"])
    assert told("cache", "s1", "--unit", "128", cwd=session)["models"]["offline"]["unit"] == 128
    harness("cache", "s1", "--unit", "0", cwd=session, status=2)
    harness("cache", "s1", "--provider", "offline", cwd=session, status=2)
    assert "render order" in harness("cache", "s1", "--order", "tools", cwd=session, status=1).stderr


def test_a_log_that_is_not_there_is_explained(folder: Path) -> None:
    assert "no session" in harness("cache", "nowhere", cwd=folder, status=1).stderr.lower()


# --- at run time ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("UC-28")
def test_run_warns_of_a_prompt_that_piles_up_and_names_the_writer(folder: Path) -> None:
    plugin = """

class Piling:
    @hookimpl
    def harness_setup(self, ctx):
        note = "The same note of some length, which is written once more in every turn of the session, again and again."
        ctx.prompt.section("piling:notes", lambda c: "\\n\\n".join([note] * (c.turn or 1)), order=20)
"""
    module = folder.parent / "site" / "kitchen_plugins.py"
    module.write_text(module.read_text() + plugin.replace("\\\\", "\\"))
    entries = folder.parent / "site" / "kitchen_extras-0.3.dist-info" / "entry_points.txt"
    entries.write_text(entries.read_text() + "piling = kitchen_plugins:Piling\n")
    (folder / "harness.toml").write_text("autoload = false\n[plugins.piling]\n")
    first, second = (harness("run", "go on", "--session", "s1", cwd=folder).stderr for _ in range(2))
    assert "stands there" not in first
    assert "The same text stands there 2 times" in second
    assert "piling (kitchen-extras 0.3)" in second
