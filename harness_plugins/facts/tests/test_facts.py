"""Permissions, delegation, platform: what is told, when it changes, and that each has a switch."""

from __future__ import annotations

from typing import Any

import pytest
from harness_facts import Facts, Permissions

from harness_core import Harness, HarnessError, UserMessage
from harness_core.errors import PluginConfigError, UnknownVariableError
from harness_core.prompt import render_prompt
from harness_core.session import APPEND, MemoryStore, PluginRecord, UserMessageLogged, seed_events

pytestmark = pytest.mark.anyio

OFF = {"git": False}


async def test_nothing_is_told_that_nobody_said(stage: Any) -> None:
    async with stage(**OFF) as it:
        await it.agent.run("one")
        assert it.snapshots == []


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"file_access": "read-only"}, "Files: they can be read; nothing can be written."),
        (
            {"file_access": "workspace-write"},
            'Files: they can be read; only below "/work" can they be written.',
        ),
        (
            {"file_access": "workspace-write", "writable_root": '/a "b" {{c}}'},
            'Files: they can be read; only below "/a \\"b\\" {{c}}" can they be written.',
        ),
        ({"file_access": "full-access"}, "Files: all can be read and written."),
        ({"approvals": "ask"}, "Permission: the user is asked before anything that needs permission."),
        ({"approvals": "never"}, "Permission: nobody is asked; what is not permitted fails."),
    ],
)
async def test_permissions_of_the_settings_are_told(stage: Any, config: dict[str, Any], text: str) -> None:
    async with stage(**OFF, **config) as it:
        await it.agent.run("one")
        await it.agent.run("two")
        assert it.snapshots == [[text]]


async def test_the_facts_stand_in_their_order_and_name_the_plugin(stage: Any) -> None:
    async with stage(file_access="read-only", approvals="ask", depth=2) as it:
        await it.agent.run("one")
        (message,) = [m for m in it.session.messages if getattr(m, "source", None) and m.source.plugin == "harness"]
        assert [(part["name"], part["plugin"]) for part in message.source.data["sections"]] == [
            ("git:state", "facts"),
            ("sandbox:policy", "facts"),
            ("approval:policy", "facts"),
            ("subagent:delegation", "facts"),
        ]
        assembly = await it.harness.assemble(it.agent.scope)
        assert [entry.order for entry in assembly.contexts] == [105, 110, 115, 120]
        assert all(section.origin.plugin != "facts" for section in assembly.sections)


async def test_a_change_is_told_with_the_next_step_and_lasts(stage: Any) -> None:
    store = MemoryStore()
    async with stage(store=store, **OFF, file_access="read-only") as it:
        await it.agent.run("one")
        it.permissions.set_files(it.agent, "workspace-write", "/tmp")
        it.permissions.set_files(it.agent, "workspace-write", "/tmp")
        await it.agent.run("two")
        assert [texts[0] for texts in it.snapshots] == [
            "Files: they can be read; nothing can be written.",
            'Files: they can be read; only below "/tmp" can they be written.',
        ]
        assert [event.type for event in it.session.events].count("plugin/facts/files") == 1
        assert len([event for event in it.session.events if event.type == "request/header"]) == 1
    async with stage(store=store, resume=True, **OFF, file_access="read-only") as it:
        assert it.permissions.files(it.session) == ("workspace-write", "/tmp")
        await it.agent.run("three")
        assert len(it.snapshots) == 2


@pytest.mark.spec("PRE-08")
async def test_switching_approvals_is_announced(stage: Any) -> None:
    async with stage(**OFF) as it:
        it.permissions.set_approvals(it.agent, "ask")
        assert it.agent.inbox.next_step == (), "nothing was said before, so nothing changed"
        await it.agent.run("one")
        it.permissions.set_approvals(it.agent, "never")
        it.permissions.set_approvals(it.agent, "never")
        (notice,) = it.agent.inbox.next_step
        assert notice.source.to_json() == {
            "kind": "plugin",
            "plugin": "facts",
            "form": "notice",
            "summary": "approvals: never",
        }
        assert (
            notice.text
            == "The harness tells, as background: from here on nobody is asked; what is not permitted fails."
        )
        await it.agent.run("two")
        assert [texts[0] for texts in it.snapshots] == [
            "Permission: the user is asked before anything that needs permission.",
            "Permission: nobody is asked; what is not permitted fails.",
        ]
        assert [m.text for m in it.session.messages if isinstance(m, UserMessage)][2] == notice.text


async def test_values_that_there_are_not_are_refused(stage: Any) -> None:
    async with stage() as it:
        for call in (it.permissions.set_files, it.permissions.set_approvals):
            with pytest.raises(HarnessError) as error:
                call(it.agent, "sometimes")
            assert (error.value.plugin, error.value.entry) == ("facts", "sometimes")
        assert len(it.session.events) == 0
    async with Harness(autoload=False) as harness:
        for key, value in (
            ("file_access", "some"),
            ("approvals", "maybe"),
            ("git_seconds", 0),
            ("git_seconds", float("nan")),
        ):
            with pytest.raises(PluginConfigError, match=key):
                await harness.install(Facts, config={key: value})


async def test_sessions_have_their_own_permissions_and_forks_inherit_them(stage: Any) -> None:
    async with stage(**OFF) as it:
        it.permissions.set_files(it.agent, "full-access")
        other = await it.harness.create_agent("b")
        assert it.permissions.files(other.session) is None
        fork = await it.harness.create_agent("c", parent="a", seed=seed_events(it.session.events))
        assert it.permissions.files(fork.session) == ("full-access", fork.session.cwd)


async def test_records_that_say_something_else_say_nothing(stage: Any) -> None:
    async with stage(**OFF, file_access="read-only") as it:
        for data in (
            {},
            {"value": "else"},
            {"value": 5},
            {"value": ["read-only"]},
            {"value": "full-access", "root": 5},
        ):
            it.session.append(PluginRecord("plugin/facts/files", data))
            it.session.append(PluginRecord("plugin/facts/approvals", data))
        it.session.append(PluginRecord("plugin/other/files", {"value": "full-access"}))
        assert it.permissions.files(it.session) == ("read-only", "/work")
        assert it.permissions.approvals(it.session) is None


@pytest.mark.spec("PRE-09")
async def test_text_of_a_user_sets_nothing(stage: Any) -> None:
    async with stage(**OFF, approvals="ask") as it:
        it.session.append(UserMessageLogged(message=UserMessage(id="u", content="approvals: never")), APPEND)
        assert it.permissions.approvals(it.session) == "ask"


@pytest.mark.parametrize(("depth", "words"), [(1, "one level below"), (3, "3 levels below")])
async def test_an_agent_that_works_for_another_knows_it(stage: Any, depth: int, words: str) -> None:
    async with stage(**OFF, depth=depth) as it:
        await it.agent.run("one")
        ((text,),) = it.snapshots
        assert words in text
        assert "nothing that you are told widens that" in text


async def test_platform_and_shell_are_variables(stage: Any) -> None:
    async with stage(environ={"SHELL": "/usr/bin/zsh"}) as it:
        it.harness.root.prompt.section("here", "On {{platform}} with {{shell}}.", order=1)
        assert render_prompt(await it.harness.assemble()).split("\n\n")[-1] == "On Linux with zsh."
    async with stage(environ={}) as it:
        it.harness.root.prompt.section("here", "With [{{shell}}].", order=1)
        assert render_prompt(await it.harness.assemble()).split("\n\n")[-1] == "With []."


async def test_each_kind_of_fact_has_a_switch(stage: Any) -> None:
    everything = {"file_access": "read-only", "approvals": "ask", "depth": 1}
    names = {
        "git": "git:state",
        "sandbox": "sandbox:policy",
        "approval": "approval:policy",
        "delegation": "subagent:delegation",
    }
    for switch, name in names.items():
        async with stage(**everything, **{switch: False}) as it:
            assembly = await it.harness.assemble(it.agent.scope)
            assert [entry.name for entry in assembly.contexts] == [each for each in names.values() if each != name]
    async with stage(platform=False) as it:
        it.harness.root.prompt.section("here", "{{platform}}", order=1)
        with pytest.raises(UnknownVariableError):
            render_prompt(await it.harness.assemble())
    async with stage(sandbox=False, approval=False) as it:
        assert it.harness.root.services.get(Permissions) is None


@pytest.mark.spec("PRE-10")
async def test_unloading_takes_everything_along(stage: Any) -> None:
    async with stage(file_access="read-only") as it:
        await it.plugin.aclose()
        await it.agent.run("one")
        assert it.snapshots == []
        assert it.shell.asked == []
        assert it.harness.root.services.get(Permissions) is None
