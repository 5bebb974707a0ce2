"""A composition from its documents: what extends what, who says what, what comes from the environment, what is switched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given, strategies as st

from harness_core import Harness, Literal, PluginContext, hookimpl, render_prompt
from harness_core.errors import CompositionError, PluginConfigError
from harness_core.host import PluginSource
from harness_core.host.check_composition import check_composition
from harness_core.host.composition import AgentTable, Composition, PlacementTable, PluginTable
from harness_core.host.documents import collect
from harness_core.host.reading import read_composition, selected, structured
from harness_core.host.references import EnvText, resolve
from harness_core.host.schema import schema_of
from tests.compositions._plugins import INSTALLED, find, source

VALID = """
[prompt]
persona = "P"
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / "harness.toml"


# --- documents --------------------------------------------------------------------------------------------------------


def test_the_nearest_document_says_and_lists_are_replaced_whole(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        far='outermost = ["a", "b"]\n[prompt]\npersona = "far"\nidentity = false\n[plugins.guide]\n[plugins.tools]\n',
        near='extends = "far.toml"\n[prompt]\npersona = "near"\n[plugins.guide.config]\ntext = "x"\nlimit = 4\n',
        harness='extends = ["near.toml"]\noutermost = ["c"]\n[plugins.guide.config]\nlimit = 5\n[plugins.listens]\n',
    )
    documents = collect(file)
    composition = structured(documents)
    assert composition.prompt.persona == "near"
    assert composition.prompt.identity is False
    assert composition.outermost == ["c"]
    assert composition.plugins["guide"].config == {"text": "x", "limit": 5}
    assert list(composition.plugins) == ["guide", "tools", "listens"]
    places = {path: (Path(place.source).name, place.line) for path, _, place in documents.values()}
    assert places["prompt.persona"] == ("near.toml", 3)
    assert places["prompt.identity"] == ("far.toml", 4)
    assert places["plugins.guide.config.text"] == ("near.toml", 5)
    assert places["plugins.guide.config.limit"] == ("harness.toml", 4)
    assert [path.name for path in documents.files] == ["far.toml", "near.toml", "harness.toml"]


def test_a_preset_is_a_mapping_or_a_file_and_may_extend_others(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "base.toml").write_text('[model]\nmodel = "small"\n')
    (shipped / "team.toml").write_text('extends = "base.toml"\n[prompt]\npersona = "of the team"\n')
    presets = [
        source("team", lambda: shipped / "team.toml"),
        source("plain", lambda: {"extends": "team", "autoload": False}),
    ]
    documents = collect(written(tmp_path, harness='extends = "plain"\n'), lambda group: presets)
    composition = structured(documents)
    assert (composition.autoload, composition.prompt.persona, composition.model.model) == (
        False,
        "of the team",
        "small",
    )
    assert str(documents.place("autoload")) == "preset 'plain' (dist-plain 1.0)"
    assert "preset 'team' (dist-team 1.0)" in str(documents.place("prompt.persona"))


def test_several_bases_may_share_one(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        base='[prompt]\npersona = "base"\n',
        one='extends = "base.toml"\n',
        two='extends = "base.toml"\n[model]\nmodel = "m"\n',
        harness='extends = ["one.toml", "two.toml"]\n',
    )
    assert read_composition(file).prompt.persona == "base"


def test_a_pyproject_holds_a_composition_in_its_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.harness.prompt]\npersna = "P"\n')
    with pytest.raises(CompositionError) as caught:
        read_composition(tmp_path / "pyproject.toml")
    assert (caught.value.entry, caught.value.line) == ("prompt.persna", 4)


def test_all_problems_are_told_at_once_each_with_its_place(tmp_path: Path) -> None:
    file = written(
        tmp_path, base='[model]\nseed = "x"\n', harness='extends = "base.toml"\nautolaod = 1\n[prompt]\nidentity = 3\n'
    )
    with pytest.raises(CompositionError) as caught:
        read_composition(file)
    told = {(problem.entry, Path(problem.file or "").name, problem.line) for problem in caught.value.problems}
    assert told == {
        ("autolaod", "harness.toml", 2),
        ("prompt.identity", "harness.toml", 4),
        ("model.seed", "base.toml", 2),
    }


# --- the environment --------------------------------------------------------------------------------------------------


def test_a_reference_becomes_the_type_of_its_key_and_only_where_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_TEST_SEED", "7")
    monkeypatch.delenv("HARNESS_ABSENT", raising=False)
    composition = read_composition(
        written(
            tmp_path,
            harness="""[model]
seed = { "$env" = "HARNESS_TEST_SEED" }
temperature = { "$env" = "HARNESS_ABSENT", default = 0.5 }
[plugins.guide]
enabled = false
[plugins.guide.config]
text = { "$env" = "HARNESS_ABSENT" }
""",
        )
    )
    assert (composition.model.seed, composition.model.temperature) == (7, 0.5)
    assert composition.plugins["guide"].config == {"text": {"$env": "HARNESS_ABSENT"}}


@pytest.mark.anyio
async def test_plugins_get_plain_values_of_the_types_that_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"A": "hello", "B": "9", "C": "On", "D": "2.5", "E": "long"}.items():
        monkeypatch.setenv(f"HARNESS_TEST_{name}", value)
    config = {
        "text": {"$env": "HARNESS_TEST_A"},
        "limit": {"$env": "HARNESS_TEST_B"},
        "strict": {"$env": "HARNESS_TEST_C"},
        "inner": {"high": {"$env": "HARNESS_TEST_D"}},
        "mode": {"$env": "HARNESS_TEST_E"},
        "names": ["x", {"$env": "HARNESS_TEST_A"}],
    }
    async with Harness(autoload=False, entry_points=lambda: list(INSTALLED)) as harness:
        made = (await harness.install("guide", config=config)).config
    assert attrs.asdict(made) == {
        "text": "hello", "limit": 9, "strict": True, "inner": {"high": 2.5}, "mode": "long", "names": ["x", "hello"]
    }  # fmt: skip
    assert {type(made.text), type(made.names[1]), type(made.limit)} == {str, int}


@pytest.mark.anyio
async def test_what_a_validator_says_of_a_value_from_the_environment_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(instance: Any, attribute: Any, value: str) -> None:
        raise ValueError(f"{value!r} is no key")

    @attrs.define
    class Config:
        key: str = attrs.field(validator=refuse)

    class Keyed:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None: ...

    Keyed.Config = Config  # type: ignore[attr-defined]
    monkeypatch.setenv("HARNESS_TEST_KEY", "sk-very-secret")
    async with Harness(autoload=False) as harness:
        with pytest.raises(PluginConfigError) as caught:
            await harness.install(Keyed, config={"key": {"$env": "HARNESS_TEST_KEY"}})
    assert "sk-very-secret" not in str(caught.value)
    assert "$HARNESS_TEST_KEY" in str(caught.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_refers_to_nothing_stays_as_it_is(value: Any) -> None:
    if not _refers(value):
        assert resolve(value, "", {}) == value


def _refers(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and "$env" in value) or any(_refers(each) for each in inner)


def test_a_resolved_value_is_a_text_that_knows_its_variable() -> None:
    found = resolve({"a": [{"$env": "X"}]}, "", {"X": "y"})["a"][0]
    assert (found, type(found), found.variable) == ("y", EnvText, "X")


# --- switching --------------------------------------------------------------------------------------------------------


def composed(**plugins: PluginTable) -> Composition:
    return Composition(plugins=plugins, agents={"writer": AgentTable(plugins={"tools": PluginTable()})})


async def active(composition: Composition) -> list[str]:
    sound = [each for each in INSTALLED if each.name in ("guide", "listens", "tools")]
    async with Harness.from_composition(composition, Path(), entry_points=lambda: sound) as harness:
        return [activation.name for activation in harness.activations if activation.source.distribution]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("variable", "switched", "expected"),
    [
        (None, (), ["guide", "tools", "listens"]),
        ("", (), []),
        ("guide", (), ["guide"]),
        (" listens , tools", (), ["listens", "tools"]),
        ("", ("guide",), ["guide"]),
        (None, ("no:guide",), ["tools", "listens"]),
        (None, ("no:tools", "no:listens"), ["guide"]),
    ],
)
async def test_plugins_are_switched_from_outside(
    variable: str | None, switched: tuple[str, ...], expected: list[str]
) -> None:
    assert await active(selected(composed(guide=PluginTable()), variable, switched)) == expected


@pytest.mark.anyio
async def test_an_empty_variable_leaves_a_harness_from_a_file_without_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, harness="[plugins.guide]\n")
    monkeypatch.setenv("HARNESS_PLUGINS", "")
    async with Harness.from_file(file, entry_points=lambda: list(INSTALLED)) as harness:
        assert [a.name for a in harness.activations] == ["offline-model"]
    monkeypatch.setenv("HARNESS_PLUGINS", "gone")
    with pytest.raises(Exception, match="'gone'"):
        async with Harness.from_file(file, entry_points=lambda: list(INSTALLED)):
            pass


# --- agents and single contributions ----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_an_agent_has_a_persona_plugins_and_tools_of_its_own_and_what_its_parent_sees() -> None:
    composition = Composition(autoload=False, plugins={"tools": PluginTable()})
    composition.prompt.identity = False
    composition.agents["child"] = AgentTable(parent="writer", deny_tools=["tools:write"], runtime_context=False)
    composition.agents["writer"] = AgentTable(
        persona="You write.", plugins={"guide": PluginTable(config={"text": "Well."})}
    )
    async with Harness.from_composition(composition, Path(), entry_points=lambda: list(INSTALLED)) as harness:
        seen = {name: await harness.assemble(harness.scope(name)) for name in ("writer", "child")}
        everybody = await harness.assemble()
        assert [scope.name for scope in harness.scope("child").chain()] == ["child", "writer", "global"]
    assert render_prompt(everybody) == ""
    assert render_prompt(seen["writer"]) == render_prompt(seen["child"]) == "You write.\n\nWell."
    assert [tool.name for tool in seen["writer"].tools] == ["read", "write"]
    assert [tool.name for tool in seen["child"].tools] == ["read"]
    assert (len(seen["writer"].contexts), len(seen["child"].contexts)) == (1, 0)


class Fourteen:
    """A package with more guidance than an integrator wants."""

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        for number in range(14):
            ctx.prompt.section(f"fourteen:{number}", Literal(f"guidance {number}"), order=number)
        ctx.prompt.context("fourteen:now", "a fact", order=1)


@pytest.mark.anyio
@pytest.mark.spec("UC-19")
async def test_single_contributions_are_left_out_and_moved_by_name_and_plugin() -> None:
    composition = Composition(autoload=False, plugins={"fourteen": PluginTable(), "guide": PluginTable()})
    composition.prompt.identity = False
    composition.sections = {f"fourteen:{number}": PlacementTable(exclude=True) for number in range(2, 14)}
    composition.sections["fourteen:0"] = PlacementTable(order=200, plugin="fourteen")
    composition.sections["guide:how"] = PlacementTable(exclude=True, plugin="fourteen")  # the guide's own stays
    composition.contexts["fourteen:now"] = PlacementTable(exclude=True)
    composition.agents["writer"] = AgentTable(sections={"fourteen:0": PlacementTable(before=["fourteen:1"])})
    composition.agents["reader"] = AgentTable(sections={"fourteen:3": PlacementTable(order=3)})
    installed = [PluginSource(name="fourteen", load=lambda: Fourteen), *INSTALLED]
    async with Harness.from_composition(composition, Path(), entry_points=lambda: list(installed)) as harness:
        assembly = await harness.assemble()
        of_writer = await harness.assemble(harness.scope("writer"))
        of_reader = await harness.assemble(harness.scope("reader"))
    assert render_prompt(assembly).split("\n\n") == ["guidance 1", "Be kind.", "guidance 0"]
    assert [context.name for context in assembly.contexts] == ["guide:now"]
    # An agent's word replaces everybody's, for that agent.
    assert render_prompt(of_writer).split("\n\n") == ["guidance 0", "guidance 1", "Be kind."]
    assert render_prompt(of_reader).split("\n\n") == ["guidance 1", "guidance 3", "Be kind.", "guidance 0"]
    findings = await check_composition(composition, Path(), installed=installed)
    assert [finding.entry for finding in findings if finding.code == "unknown-contribution"] == ["sections.guide:how"]


# --- the schema -------------------------------------------------------------------------------------------------------

SCHEMA, PROBLEMS = schema_of(each for each in INSTALLED if each.name in ("guide", "needy", "tools", "unimportable"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
BROKEN = sorted((Path(__file__).parents[1] / "compositions" / "broken").glob("*.toml"))


def test_the_schema_is_one_and_tells_which_plugins_it_knows_nothing_of() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert list(PROBLEMS) == ["unimportable"]
    config = SCHEMA["$defs"]["guide.GuideConfig"]
    assert config["properties"]["limit"]["default"] == 3
    assert config["additionalProperties"] is False
    assert SCHEMA["$defs"]["PromptTable"]["properties"]["persona"]["description"].startswith(
        "The deployment's own text"
    )


@pytest.mark.parametrize("file", BROKEN, ids=[file.stem for file in BROKEN])
def test_the_schema_refuses_what_reading_refuses_of_keys_and_types(file: Path) -> None:
    try:
        documents = collect(file, find)
    except CompositionError:
        pytest.skip("it is no document")
    try:
        structured(documents, {"HARNESS_TEST_SECRET": "x", "PATH": "y"})
        said = ""
    except CompositionError as error:
        said = error.message
    valid = VALIDATOR.is_valid(documents.merged())
    if "expected" in said or "unknown key" in said:
        assert not valid or "variable" in said  # what a variable holds is no matter of the file
    elif not said and not file.stem.startswith(("plugin-", "agent-plugin-")):
        assert valid, [error.message for error in VALIDATOR.iter_errors(documents.merged())]


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        ({"text": "x", "limit": 3, "mode": "long", "inner": {"high": 2}, "names": ["a"]}, True),
        ({"text": {"$env": "X"}, "names": [{"$env": "X", "default": "y"}]}, True),
        ({"text": 3}, False),
        ({"mode": "medium"}, False),
        ({"inner": {"hihg": 1.0}}, False),
        ({"text": {"$env": 3}}, False),
    ],
)
def test_a_plugins_settings_are_part_of_it(config: dict[str, Any], fits: bool) -> None:
    for data in (
        {"plugins": {"guide": {"config": config}}},
        {"agents": {"a": {"plugins": {"guide": {"config": config}}}}},
    ):
        assert VALIDATOR.is_valid(data) is fits
    assert VALIDATOR.is_valid({"plugins": {"tools": {"config": {}}, "other": {"config": {"any": 1}}}})
    assert not VALIDATOR.is_valid({"plugins": {"tools": {"config": {"any": 1}}}})


@pytest.mark.anyio
@pytest.mark.spec("UC-19")
async def test_what_is_moved_shows_the_order_that_it_has_here() -> None:
    composition = Composition(autoload=False, plugins={"guide": PluginTable()})
    composition.sections["guide:how"] = PlacementTable(order=-200)
    async with Harness.from_composition(composition, Path(), entry_points=lambda: list(INSTALLED)) as harness:
        first = (await harness.assemble()).sections[0]
        assert (first.name, first.order) == ("guide:how", -200)
        findings = await check_composition(composition, Path(), installed=INSTALLED)
        assert [finding.code for finding in findings] == []
