"""The provenance beside a header: whose each part is, which listener changed it, and where variables' values stand (D7)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from harness_core import Harness, PromptSettings, Section, ToolSchema, hookimpl
from harness_core.host.discovery import PluginSource
from harness_core.prompt.authors import Authors

pytestmark = [pytest.mark.anyio, pytest.mark.spec("D7")]


class Ground:
    name = "ground"

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("ground:one", "In {{city}} and {{city}}, {{mood}}.", order=1)
        ctx.prompt.section("ground:two", "Two.", order=2)
        ctx.prompt.section("ground:empty", "", order=3)
        ctx.prompt.variable("city", lambda _: "Rome")
        ctx.prompt.variable("mood", lambda _: "calm")
        ctx.prompt.variable("unused", lambda _: "nothing")
        for name in ("alpha", "beta"):
            ctx.tools.register(ToolSchema(name, f"Does {name}."), lambda call: "")


def listening(listener: Any) -> Any:
    class Listening:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> Any:
            return listener(assembly)

    plugin = Listening()
    return PluginSource(name="listening", distribution="dist-listening", version="2.0", load=lambda: plugin)


async def prepared(*plugins: Any) -> Any:
    settings = PromptSettings(identity=False)
    async with Harness(settings, plugins=[Ground(), *plugins], autoload=False) as harness:
        return await harness.prepare_step(None, ["hi"])


def named(listed: Any, name: str) -> Any:
    return next(each for each in listed if each["name"] == name)


async def test_spans_of_sections_and_of_values_lead_to_their_text() -> None:
    step = await prepared()
    assert [each["name"] for each in step.provenance["sections"]] == ["ground:one", "ground:two"]
    one = step.provenance["sections"][0]
    assert step.system[slice(*one["span"])] == "In Rome and Rome, calm."
    values = [(each["name"], step.system[slice(*each["span"])]) for each in one["variables"]]
    assert values == [("city", "Rome"), ("city", "Rome"), ("mood", "calm")]
    assert [each["name"] for each in step.provenance["variables"]] == ["city", "mood"], "those that are used"
    assert named(step.provenance["variables"], "city")["plugin"] == "ground"


async def test_without_listeners_nobody_has_changed_anything() -> None:
    provenance = (await prepared()).provenance
    assert set(provenance) == {"sections", "tools", "variables"}
    assert not any("changed_by" in each for lane in provenance.values() for each in lane)


async def test_a_changed_section_tool_and_variable_name_the_listener_with_its_line_and_what_it_was_given() -> None:
    def listener(assembly: Any) -> None:
        assembly.replace_section(assembly.section("ground:two").with_text("Changed."))
        assembly.replace_tool(attrs.evolve(assembly.tool("beta"), description="Better."))
        assembly.variables["city"] = "Bern"

    provenance = (await prepared(listening(listener))).provenance
    for lane, name in (("sections", "ground:two"), ("tools", "beta"), ("variables", "city")):
        found = named(provenance[lane], name)
        assert found["plugin"] == "ground", "it is still theirs"
        by = found["changed_by"]
        assert (by["plugin"], by["distribution"], by["version"]) == ("listening", "dist-listening", "2.0")
        assert by["file"] == __file__
        assert found["given"]
    assert "changed_by" not in named(provenance["sections"], "ground:one")
    assert "changed_by" not in named(provenance["tools"], "alpha")


async def test_what_was_given_is_told_apart_when_it_changes_under_the_same_listener() -> None:
    texts = iter(["one", "one", "two"])

    class Moody:
        name = "moody"

        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("moody:mood", lambda _: next(texts), order=9)

    def listener(assembly: Any) -> None:
        assembly.replace_section(assembly.section("moody:mood").with_text("always the same"))

    settings = PromptSettings(identity=False)
    async with Harness(settings, plugins=[Moody(), listening(listener)], autoload=False) as harness:
        steps = [await harness.prepare_step(None, ["hi"]) for _ in range(3)]
    given = [named(step.provenance["sections"], "moody:mood")["given"] for step in steps]
    assert given[0] == given[1] != given[2]


async def test_a_rebuilt_assembly_blames_the_listener_for_what_it_changed_alone() -> None:
    def listener(assembly: Any) -> Any:
        sections = [*assembly.sections, Section("extra", "More.")]
        return attrs.evolve(assembly, sections=sections, variables={**assembly.variables, "mood": "wild"})

    provenance = (await prepared(listening(listener))).provenance
    changed = {each["name"] for each in provenance["sections"] if "changed_by" in each}
    assert changed == {"extra"}
    assert "plugin" not in named(provenance["sections"], "extra"), "nobody registered it"
    assert [each["name"] for each in provenance["variables"] if "changed_by" in each] == ["mood"]


@pytest.mark.parametrize("how", ["del", "pop", "remove", "slice", "clear"])
async def test_what_was_dropped_is_told_with_who_dropped_it(how: str) -> None:
    def listener(assembly: Any) -> None:
        tools = assembly.tools
        {
            "del": lambda: tools.__delitem__(0),
            "pop": lambda: tools.pop(0),
            "remove": lambda: tools.remove(tools[0]),
            "slice": lambda: tools.__setitem__(slice(0, 1), []),
            "clear": tools.clear,
        }[how]()

    provenance = (await prepared(listening(listener))).provenance
    dropped = {each["name"]: each for each in provenance["dropped"]}
    assert set(dropped) == ({"alpha", "beta"} if how == "clear" else {"alpha"})
    assert dropped["alpha"]["kind"] == "tool"
    assert dropped["alpha"]["plugin"] == "ground"
    assert dropped["alpha"]["changed_by"]["plugin"] == "listening"


async def test_another_order_is_told_with_who_made_it() -> None:
    provenance = (await prepared(listening(lambda assembly: assembly.tools.reverse()))).provenance
    assert set(provenance["moved"]) == {"tools"}
    assert provenance["moved"]["tools"]["plugin"] == "listening"
    assert not any("changed_by" in each for each in provenance["tools"])


async def test_plugins_that_listen_to_steps_are_there_with_their_versions() -> None:
    class Stepping:
        @hookimpl
        def agent_pre_step(self, step: Any) -> None:
            pass

    plugin = Stepping()
    source = PluginSource(name="stepping", distribution="dist-s", version="3.1", load=lambda: plugin)
    assert (await prepared(source)).provenance["plugins"] == {"stepping": {"distribution": "dist-s", "version": "3.1"}}


async def test_who_is_behind_a_change_is_told_among_several_and_through_helper_functions() -> None:
    def helper(assembly: Any) -> None:
        assembly.sections.append(Section("helped", "by a helper"))

    class Outer:
        name = "outer"

        @hookimpl
        async def system_prompt_assemble(self, call_next: Any) -> Any:
            return await call_next()

    async with Harness(plugins=[Ground(), listening(helper), Outer()], autoload=False) as harness:
        assembly = await harness.assemble()
    author = Authors(assembly).of_record("sections", assembly.section("helped"))
    assert author is not None
    assert author.listener.plugin == "listening"
