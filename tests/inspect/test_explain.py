"""Explanations: who registered a thing, what it shadows, who changed it, why it stands where it stands."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core import (
    Enter,
    Harness,
    PromptSettings,
    Scope,
    Section,
    Source,
    ToolSchema,
    UserMessage,
    hookimpl,
)
from harness_core.inspect import Explanation, explain, find_text, tool_writers, traced_step
from harness_core.inspect.lost import known_names, lost_text
from tests.inspect.conftest import Looked

pytestmark = pytest.mark.anyio


def only(found: list[Explanation]) -> Explanation:
    (explanation,) = found
    return explanation


def by(explanation: Explanation) -> list[tuple[str, str]]:
    return [(run.listener.plugin, change.kind) for run, change in explanation.history]


# --- the twelve -------------------------------------------------------------------------------------------------------


def test_a_section_names_its_registrant_and_the_two_who_fought_over_it(looked: Looked) -> None:
    found = only(looked.explained["house:rules"])
    assert (found.kind, found.place) == ("section", 3)
    assert [each.writer.plugin for each in found.registrations] == ["ground"]
    assert found.registrations[0].writer.file is not None
    assert by(found) == [("shouting", "rewritten"), ("whisper", "rewritten")]
    assert found.text.endswith("Whisper.")
    assert "order 10" in found.why


def test_a_variable_a_tool_and_contexts_name_exactly_who_changed_them(looked: Looked) -> None:
    city = only(looked.explained["city"])
    assert (city.kind, city.text, by(city)) == ("variable", "Rome", [("travel", "rewritten")])
    assert "house:place" in city.why
    beta = only(looked.explained["beta"])
    assert (beta.kind, by(beta)) == ("tool", [("polish", "rewritten")])
    assert beta.registrations[0].writer.plugin == "ground"
    gamma = only(looked.explained["gamma"])
    assert (gamma.place, by(gamma)) == (1, [("sorter", "moved")])
    assert "sorter" in gamma.why
    noise = only(looked.explained["noise"])
    assert (noise.place, by(noise)) == (None, [("trimmer", "removed")])
    assert "removed by plugin 'trimmer'" in noise.why
    moon = only(looked.explained["moon"])
    assert (moon.registrations, by(moon), moon.text) == ((), [("evolver", "added")], "waxing")
    assert by(only(looked.explained["weather"])) == []
    assert looked.explained["nothing"] == []


def test_a_piece_of_text_leads_back_to_its_plugin_file_and_line(looked: Looked) -> None:
    (whisper,) = looked.found["Whisper"]
    assert (whisper.where, [piece.writer.name for piece in whisper.pieces]) == ("system text", ["whisper"])
    assert whisper.pieces[0].writer.line is not None
    assert looked.found["SHOUT"] == [], "the other one had the last word"
    (place,) = looked.found["We are in Rome"]
    assert [(piece.text, piece.writer.name) for piece in place.pieces] == [("We are in ", "ground"), ("Rome", "travel")]
    (lovely,) = looked.found["lovely things"]
    assert (lovely.where, lovely.pieces[0].writer.name) == ("tool beta", "polish")
    assert [writer.name for writer in lovely.pieces[0].chain] == ["ground", "polish"]
    (moon,) = looked.found["waxing"]
    assert moon.where == "context snapshot"
    assert looked.found["spam"] == [], "the message was dropped"


# --- registrations ----------------------------------------------------------------------------------------------------


class Registering:
    def __init__(self, name: str, register: Any) -> None:
        self.name = name
        self._register = register

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        self._register(ctx)


async def explained(
    name: str, *plugins: Any, scope: str | None = None, prompts: Any = (), **options: Any
) -> list[Explanation]:
    async with Harness(plugins=plugins, autoload=False, **options) as harness:
        where: Scope = harness.scope(scope) if scope else harness.root
        traced = await traced_step(harness, where, prompts)
        return explain(harness, where, traced.assembly, name, traced.step)


async def test_a_shadowed_registration_is_listed_with_what_shadows_it() -> None:
    async with Harness(
        plugins=[Registering("far", lambda ctx: ctx.prompt.section("s", "far", order=5))], autoload=False
    ) as harness:
        scope = harness.scope("near")
        await harness.install(Registering("near", lambda ctx: ctx.prompt.section("s", "near", order=7)), scope=scope)
        traced = await traced_step(harness, scope)
        found = only(explain(harness, scope, traced.assembly, "s"))
    assert [(each.writer.plugin, each.status.split(" ")[0]) for each in found.registrations] == [
        ("far", "shadowed"),
        ("near", "in"),
    ]
    assert "near" in found.registrations[0].status
    assert found.text == "near"


async def test_ties_constraints_and_conditions_are_part_of_the_reason() -> None:
    def register(ctx: Any) -> None:
        ctx.prompt.section("one", "1", order=5)
        ctx.prompt.section("two", "2", order=5, before="one")
        ctx.prompt.section("bound", "3", order=9, tools=["absent"])

    plugin = Registering("p", register)
    assert "tied with one" in only(await explained("two", plugin)).why
    assert "before one" in only(await explained("two", plugin)).why
    bound = only(await explained("bound", plugin))
    assert "only while absent can be seen" in bound.registrations[0].facts
    assert "empty" in bound.why


async def test_suppressed_contexts_and_complete_prompts_say_why_a_thing_is_not_there() -> None:
    def register(ctx: Any) -> None:
        ctx.prompt.section("all", "All of it.", order=1, complete=True)
        ctx.prompt.section("other", "Lost.", order=2)
        ctx.prompt.context("fact", "A fact.", order=1)

    plugin = Registering("p", register)
    other = only(await explained("other", plugin))
    assert other.place is None
    assert "'all' is the complete prompt" in other.why
    fact = only(await explained("fact", plugin, settings=PromptSettings(runtime_context=False)))
    assert fact.place is None
    assert "suppressed by harness" in fact.why


async def test_tools_say_how_they_are_ordered_and_hidden_ones_that_they_are() -> None:
    plugin = Registering("p", lambda ctx: ctx.tools.register(ToolSchema("hammer"), lambda call: "bang"))
    assert "alphabetical" in only(await explained("hammer", plugin)).why
    settings = PromptSettings(tool_order=["hammer", "<unlisted-tools>"])
    assert "named in tool_order" in only(await explained("hammer", plugin, settings=settings)).why
    async with Harness(plugins=[plugin], autoload=False) as harness:
        scope = harness.scope("safe")
        scope.tools.restrict(deny=["hammer"])
        traced = await traced_step(harness, scope)
        hidden = only(explain(harness, scope, traced.assembly, "hammer"))
    assert hidden.place is None
    assert "hidden by a restriction" in hidden.why


async def test_a_tool_of_a_provider_is_the_providers() -> None:
    plugin = Registering("p", lambda ctx: ctx.prompt.tools(lambda _: [ToolSchema("saw")]))
    found = only(await explained("saw", plugin))
    assert [each.writer.plugin for each in found.registrations] == ["p"]


async def test_messages_are_known_by_id_and_by_plugin() -> None:
    class Adding:
        name = "adding"

        @hookimpl
        async def agent_pre_step(self, call_next: Any) -> Any:
            from harness_core import Enter, Source

            decision = await call_next()
            extra = UserMessage(id="extra", content="by the way", source=Source("plugin", "notice", "adding"))
            return Enter((*decision.messages, extra))

    for name in ("extra", "adding"):
        found = only(await explained(name, Adding(), prompts=["hi"]))
        assert (found.kind, found.name, found.place) == ("message", "extra", 2)
        assert by(found) == [("adding", "added")]


@pytest.mark.spec("UC-15")
async def test_a_description_replaced_by_pattern_is_found_with_old_and_new() -> None:
    class Replacing:
        name = "replacing"

        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            import attrs

            for tool in list(assembly.tools):
                assembly.replace_tool(attrs.evolve(tool, description=tool.description.replace("files", "documents")))

    plugin = Registering("p", lambda ctx: ctx.tools.register(ToolSchema("read", "Read files."), lambda call: ""))
    found = only(await explained("read", plugin, Replacing()))
    assert found.history[0][1].fields == {"description": ("Read files.", "Read documents.")}
    assert found.history[0][0].listener.plugin == "replacing"


async def test_what_a_failed_assembly_had_is_still_explained() -> None:
    class Failing:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            assembly.sections.append(Section("x", "y"))
            raise ValueError("no")

    plugin = Registering("p", lambda ctx: ctx.prompt.section("s", "text", order=3))
    found = only(await explained("s", plugin, Failing()))
    assert found.registrations[0].writer.plugin == "p"
    async with Harness(plugins=[plugin, Failing()], autoload=False) as harness:
        traced = await traced_step(harness, harness.root)
        assert isinstance(traced.error, ValueError)
        assert find_text(traced.assembly, "text", tools=tool_writers(harness, harness.root)) == []


async def test_a_message_of_a_plugin_with_a_kind_of_its_own_is_not_the_users() -> None:
    class Guide:
        @hookimpl
        async def agent_pre_step(self, step: Any, call_next: Any) -> Enter:
            decision = await call_next()
            return Enter((*decision.messages, UserMessage(id="g", content="Use metres.", source=Source("guide"))))

    async with Harness(plugins=[Guide()], autoload=False) as harness:
        traced = await traced_step(harness, harness.root, ["Measure in feet."])
        said = {text: find_text(traced.assembly, text, step=traced.step) for text in ("metres", "feet")}
        assert {text: found.pieces[0].writer.plugin for text, (found,) in said.items()} == {
            "metres": "guide",
            "feet": "the user",
        }


async def test_a_text_that_did_not_make_it_is_known_by_what_had_it() -> None:
    def register(ctx: Any) -> None:
        ctx.prompt.section("bound", "Use the hammer.", order=1, tools=["hammer"])
        ctx.prompt.section("whole", "All there is in {{city}}.", order=2, complete=True)
        ctx.prompt.section("other", lambda _: "Beside it in {{city}}.", order=3)
        ctx.prompt.variable("city", lambda _: "Paris")

    class Drops:
        @hookimpl
        def agent_pre_step(self, step: Any) -> Enter:
            return Enter(each for each in step.messages if each.text != "spam")

    async with Harness(plugins=[Registering("p", register), Drops()], autoload=False) as harness:
        traced = await traced_step(harness, harness.root, ["spam", "eggs"])
        spam = traced.step.given.lanes["messages"][0] if traced.step is not None else None

    def lost(fragment: str) -> list[str]:
        return lost_text(traced.assembly, fragment, traced.step)

    assert (lost("the hammer"), lost("it in {{city}}"), lost("it in Paris")) == (["bound"], ["other"], ["other"])
    assert lost("spam") == [spam.id if spam is not None else ""]
    assert lost("nowhere") == lost("") == []
    assert known_names(traced.assembly) == ["harness:identity", "deployment:persona", "bound", "whole", "other", "city"]
