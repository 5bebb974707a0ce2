"""Logs read for people: explained offline, compared lane by lane, exported, told in words."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from harness_core import hookimpl
from harness_core.errors import HarnessError
from harness_core.inspect import (
    as_curl,
    compare_requests,
    explain_logged,
    find_logged,
    logged_requests,
    neutral_json,
    open_log,
)
from harness_core.inspect.compare import owner_of
from harness_core.inspect.logged import request_at
from harness_core.inspect.narrate import event_line
from harness_core.models import WireRequest
from harness_core.session import SessionNotFoundError
from harness_core.session.errors import SessionError
from tests.inspect._recorded import Clock, answers, broken_run, recorded, source

pytestmark = pytest.mark.anyio


class Weather:
    """Three contexts; the second one changes before step 3."""

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.context("weather:sky", lambda c: "blue", order=1)
        ctx.prompt.context("weather:rain", lambda c: "none" if (c.step or 0) < 3 else "heavy", order=2)
        ctx.prompt.context("weather:wind", lambda c: "calm", order=3)


# --- explained --------------------------------------------------------------------------------------------------------


async def test_sections_variables_tools_and_contexts_are_explained_without_any_plugin() -> None:
    log = await recorded([Clock(), source("weather", Weather()), *(await _plugins())], answers(4))
    request = request_at(log)
    (section,) = explain_logged(request, "places:here")
    assert (section.where, section.owner.plugin, section.owner.version) == ("system", "places", "4.5.6")
    (variable,) = explain_logged(request, "city")
    assert (variable.text, variable.owner.plugin) == ("Paris", "places")
    assert "places:here" in variable.note
    (tool,) = explain_logged(request, "work")
    assert (tool.where, tool.owner.plugin) == ("tools", "clock")
    (context,) = explain_logged(request, "weather:rain")
    assert (context.where, context.text, context.owner.plugin) == ("context", "heavy", "weather")
    assert explain_logged(request, "nowhere") == []


async def _plugins() -> list[Any]:
    from tests.inspect._recorded import Places

    return [source("places", Places(), "4.5.6")]


async def test_a_piece_of_text_leads_to_section_variable_tool_or_message() -> None:
    log = await recorded([Clock(), source("weather", Weather()), *(await _plugins())], answers(4))
    request = request_at(log)
    found = find_logged(request, "You are in Paris.")
    assert [(each.name, each.owner.plugin) for each in found] == [("places:here", "places"), ("city", "places")]
    (tool,) = find_logged(request, "Do some work")
    assert (tool.name, tool.owner.plugin) == ("work", "clock")
    (context,) = [each for each in find_logged(request, "heavy")]
    assert (context.where, context.name, context.owner.plugin) == ("context", "weather:rain", "weather")
    (prompt,) = find_logged(request, "go")
    assert prompt.owner.plugin == "the user"
    (answer,) = find_logged(request, "Step 1.")
    assert answer.owner.plugin == "the model"
    results = find_logged(request, "worked")
    assert {each.owner.plugin for each in results} == {"clock"}
    assert find_logged(request, "") == []


async def test_what_a_listener_changed_or_dropped_is_said_to_be() -> None:
    class Meddling:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            assembly.sections.remove(assembly.section("harness:identity"))
            assembly.replace_section(assembly.section("clock:first").with_text("Rewritten."))

    log = await recorded([Clock(), source("meddling", Meddling())], answers(2))
    request = request_at(log)
    (changed,) = explain_logged(request, "clock:first")
    assert changed.changed_by is not None
    assert (changed.owner.plugin, changed.changed_by.plugin, changed.changed_by.version) == (
        "clock",
        "meddling",
        "1.2.3",
    )
    (dropped,) = explain_logged(request, "harness:identity")
    assert dropped.changed_by is not None
    assert (dropped.where, dropped.changed_by.plugin) == ("the dropped sections", "meddling")


# --- compared ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("UC-13")
async def test_two_steps_are_compared_lane_by_lane_and_the_one_changed_context_is_named_with_its_owner() -> None:
    log = await recorded([Clock(), source("weather", Weather())], answers(4))
    requests = logged_requests(log.info, log.events)
    lanes = {lane.lane: lane for lane in compare_requests(requests[1], requests[2])}
    assert [lane.same for lane in lanes.values()] == [True, True, True, False, False]
    (rain,) = lanes["context"].changes
    assert (rain.name, rain.kind, dict(rain.fields)) == ("weather:rain", "rewritten", {"text": ("none", "heavy")})
    assert owner_of(rain).plugin == "weather"
    assert {change.kind for change in lanes["messages"].changes} == {"added"}


async def test_sections_and_settings_of_two_sessions_are_compared() -> None:
    one, two = await broken_run(), await recorded([Clock()], answers(3), session="s2")
    lanes = {lane.lane: lane for lane in compare_requests(request_at(one), request_at(two))}
    assert {(change.kind, change.name) for change in lanes["system"].changes} == {
        ("removed", "notes:all"),
        ("removed", "places:here"),
    }
    assert lanes["tools"].same
    assert lanes["settings"].same
    told = json.loads(json.dumps([lane.to_json() for lane in lanes.values()]))
    assert told[2]["changes"][0]["owner"]["plugin"] in ("notes", "places")


# --- found ------------------------------------------------------------------------------------------------------------


async def test_a_log_is_opened_by_path_or_by_id(tmp_path: Any) -> None:
    from harness_core.session import FileStore

    await broken_run(tmp_path)
    by_path = open_log(str(tmp_path / "s1.jsonl"))
    by_id = open_log("s1", FileStore(tmp_path))
    assert by_path.info == by_id.info
    assert list(by_path.events) == list(by_id.events)
    with pytest.raises(SessionNotFoundError):
        open_log("s9", FileStore(tmp_path))


async def test_a_request_that_is_not_there_is_refused_with_how_many_there_are() -> None:
    log = await broken_run()
    assert request_at(log).number == 10
    assert request_at(log, 3).dispatch.step == 3
    for number in (0, 11):
        with pytest.raises(SessionError, match="has 10 requests"):
            request_at(log, number)
    assert issubclass(SessionError, HarnessError)


# --- exported ---------------------------------------------------------------------------------------------------------


async def test_a_request_in_neutral_form_is_what_the_log_has() -> None:
    request = request_at(await broken_run(), 2)
    told = json.loads(json.dumps(neutral_json(request.request)))
    assert told["header"]["config"] == {"provider": "script", "model": "m1"}
    assert [tool["name"] for tool in told["header"]["tools"]] == ["work"]
    assert [message["role"] for message in told["messages"]] == ["user", "assistant", "tool"]


def test_a_curl_command_is_one_shell_command_and_names_secrets_without_showing_them() -> None:
    body = json.dumps({"text": 'it\'s $HOME and `this` "that"\n'}).encode()
    wire = WireRequest(
        url="https://example.org/v1/chat/completions",
        headers={"content-type": "application/json"},
        secrets={"authorization": "Bearer $EXAMPLE_KEY"},
        body=body,
    )
    words = shlex.split(as_curl(wire))
    assert words[0] == "curl"
    assert words[-1] == body.decode()
    assert "authorization: Bearer $EXAMPLE_KEY" in words
    assert '-H "authorization: Bearer $EXAMPLE_KEY"' in as_curl(wire)


# --- told -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("UC-13")
async def test_events_are_told_in_one_line_each_with_what_changed_in_a_snapshot() -> None:
    log = await recorded([Clock(), source("weather", Weather())], answers(4))
    lines = [event_line(event) for event in log.events]
    assert all("\n" not in line for line in lines)
    assert any("changed: weather:rain (weather)" in line for line in lines)
    assert any("turn/end" in line and "completed" in line for line in lines)
    assert any("work" in line and "tool/call" in line for line in lines)
