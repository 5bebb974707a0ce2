"""Which plugins are installed, from where, and in which order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import define
from hypothesis import given, strategies as st

from harness_core import Harness, PluginContext, PluginUse, PromptAssembly, PromptSettings, hookimpl, render_prompt
from harness_core.errors import PluginConfigError, PluginLoadError, PluginOrderError
from harness_core.host import PluginSource
from harness_core.host.loading import ordered_uses, resolved


def plugin(name: str, **facts: Any) -> PluginSource:
    class Plugin:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section(f"{name}:s", f"section of {name}", order=1)

        @hookimpl
        def system_prompt_assemble(self, assembly: PromptAssembly) -> None: ...

    return PluginSource(
        name=name,
        distribution=f"dist-{name}",
        version="1.0",
        entry_point=f"m_{name}:Plugin",
        load=lambda: Plugin,
        **facts,
    )


def broken(name: str) -> PluginSource:
    def load() -> Any:
        raise ImportError(f"no module named m_{name}")

    return PluginSource(
        name=name, distribution=f"dist-{name}", version="2.1", entry_point=f"m_{name}:Plugin", load=load
    )


def harness_of(*installed: PluginSource, plugins: Any = (), **options: Any) -> Harness:
    listed = sorted(installed, key=lambda source: source.name)
    return Harness(PromptSettings(identity=False), plugins=plugins, entry_points=lambda: list(listed), **options)


def order(harness: Harness) -> list[str]:
    return [activation.name for activation in harness.activations]


@pytest.mark.anyio
@pytest.mark.spec("D2", "UC-24")
async def test_the_order_on_the_path_never_matters() -> None:
    sources = [plugin("b"), plugin("a"), plugin("c")]
    prompts = set()
    for permuted in itertools.permutations(sources):
        async with harness_of(*permuted) as harness:
            assert order(harness) == ["a", "b", "c"]
            prompts.add(render_prompt(await harness.assemble()))
    assert len(prompts) == 1


@pytest.mark.anyio
@pytest.mark.spec("D2")
async def test_the_composition_comes_first_then_the_rest_by_name() -> None:
    async with harness_of(plugin("a"), plugin("b"), plugin("c"), plugins=["c", PluginUse(plugin="a")]) as harness:
        assert order(harness) == ["c", "a", "b"]
        # pluggy's order: the later registered is further out.
        assert [each.plugin for each in harness.listeners("system_prompt_assemble")] == ["b", "a", "c"]


@pytest.mark.anyio
@pytest.mark.spec("D2")
async def test_constraints_move_a_plugin_no_further_than_they_must() -> None:
    uses = [
        PluginUse(plugin="a", after=["c"]),
        PluginUse(plugin="b"),
        PluginUse(plugin="c"),
        PluginUse(plugin="d", before=["b"]),
    ]
    async with harness_of(*map(plugin, "abcd"), plugins=uses) as harness:
        assert order(harness) == ["c", "a", "d", "b"]
        by_name = {each.plugin: each for each in harness.listeners("system_prompt_assemble")}
        assert by_name["a"].constraints == ("after c",)
        assert "after c" in by_name["a"].why


@pytest.mark.anyio
@pytest.mark.spec("D2")
async def test_a_cycle_is_printed() -> None:
    uses = [PluginUse(plugin="a", after=["b"]), PluginUse(plugin="b", after=["c"]), PluginUse(plugin="c", after=["a"])]
    with pytest.raises(PluginOrderError) as caught:
        async with harness_of(*map(plugin, "abc"), plugins=uses):
            pass
    assert caught.value.names[0] == caught.value.names[-1]
    assert set(caught.value.names) == {"a", "b", "c"}
    assert " -> ".join(caught.value.names) in str(caught.value)


@given(st.permutations(range(6)), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_every_acyclic_constraint_is_kept_and_free_plugins_stay_in_order(
    base: list[int], pairs: set[tuple[int, int]]
) -> None:
    edges = {(low, high) for low, high in pairs if base.index(low) < base.index(high)} | {
        (base[-1], base[0]) for _ in range(1) if len(pairs) == 0
    }
    uses = [
        PluginUse(plugin=plugin(str(number)), after=[str(low) for low, high in edges if high == number])
        for number in base
    ]
    result = [int(each.source.name) for each in ordered_uses(resolved(uses, [], autoload=False))]
    assert sorted(result) == sorted(base)
    assert all(result.index(low) < result.index(high) for low, high in edges)
    if all(base.index(low) < base.index(high) for low, high in edges):
        assert result == base  # already in order: nothing moves


@pytest.mark.anyio
async def test_an_import_error_names_distribution_version_and_entry_point() -> None:
    with pytest.raises(PluginLoadError) as caught:
        async with harness_of(plugin("a"), broken("b")):
            pass
    assert (caught.value.plugin, caught.value.distribution, caught.value.version) == ("b", "dist-b", "2.1")
    assert "m_b:Plugin" in str(caught.value)
    assert isinstance(caught.value.__cause__, ImportError)


@pytest.mark.anyio
@pytest.mark.spec("UC-06", "UC-20")
async def test_a_failing_plugin_stays_out_where_the_composition_says_skip() -> None:
    async with harness_of(plugin("a"), broken("b"), plugin("c"), on_error="skip") as harness:
        assert order(harness) == ["a", "c"]
        [failure] = harness.failures
        assert (failure.name, failure.distribution, failure.version) == ("b", "dist-b", "2.1")
    uses = [PluginUse(plugin="b", on_error="skip")]
    async with harness_of(plugin("a"), broken("b"), plugins=uses) as harness:
        assert order(harness) == ["a"]


@pytest.mark.anyio
async def test_a_failing_plugin_takes_the_others_out_again() -> None:
    log: list[str] = []

    class Tells:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.effects.callback(log.append, "undone")

    with pytest.raises(PluginLoadError):
        async with harness_of(broken("b"), plugins=[Tells]):
            pass
    assert log == ["undone"]


@pytest.mark.anyio
@pytest.mark.spec("UC-11")
async def test_a_plugin_for_another_core_is_refused_before_it_is_imported() -> None:
    imported: list[str] = []
    source = PluginSource(
        name="old",
        distribution="dist-old",
        version="0.3",
        entry_point="m:P",
        requires=("attrs>=20", "Pluggy_Harness>=999"),
        load=lambda: imported.append("old"),
    )
    with pytest.raises(PluginLoadError) as caught:
        async with harness_of(source):
            pass
    assert "999" in str(caught.value)
    assert caught.value.distribution == "dist-old"
    assert imported == []


def needing_a_city() -> PluginSource:
    @define
    class Needs:
        city: str

    class Plugin:
        Config = Needs

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("city", ctx.config.city, order=1)

    return PluginSource(name="needy", distribution="dist-needy", version="1.0", entry_point="m:P", load=lambda: Plugin)


@pytest.mark.anyio
async def test_what_only_happens_to_be_installed_may_wait_for_its_settings() -> None:
    async with harness_of(needing_a_city(), plugin("a")) as harness:
        assert order(harness) == ["a"]
        [failure] = harness.failures
        assert (failure.name, failure.distribution) == ("needy", "dist-needy")
        assert "city: is missing" in str(failure.error)
    async with harness_of(needing_a_city(), plugins=[PluginUse(plugin="needy", config={"city": "Rome"})]) as harness:
        assert order(harness) == ["needy"]


@pytest.mark.anyio
async def test_what_was_asked_for_must_have_its_settings() -> None:
    with pytest.raises(PluginConfigError, match="city"):
        async with harness_of(needing_a_city(), plugins=["needy"]):
            pass


@pytest.mark.anyio
async def test_an_unknown_name_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(PluginLoadError, match="Did you mean 'weather'"):
        async with harness_of(plugin("weather"), plugins=["wether"]):
            pass


@pytest.mark.anyio
async def test_disabled_plugins_are_neither_used_nor_loaded_on_the_side() -> None:
    uses = [PluginUse(plugin="a", enabled=False)]
    async with harness_of(plugin("a"), plugin("b"), plugins=uses) as harness:
        assert order(harness) == ["b"]


@pytest.mark.anyio
async def test_without_autoload_only_what_is_listed_is_installed() -> None:
    async with harness_of(plugin("a"), plugin("b"), plugins=["b"], autoload=False) as harness:
        assert order(harness) == ["b"]


@pytest.mark.anyio
@pytest.mark.spec("UC-10")
async def test_the_outermost_tier_cannot_be_outranked_by_later_registration() -> None:
    class Policy:
        @hookimpl(tryfirst=True)
        async def agent_pre_step(self, step: object, call_next: Any) -> Any:
            return await call_next()

    class Late:
        @hookimpl(wrapper=True, tryfirst=True)
        def agent_pre_step(self, step: object) -> Any:
            return (yield)

    async with harness_of(plugins=[PluginUse(plugin=Policy, outermost=True)], autoload=False) as harness:
        await harness.install(Late)
        listeners = harness.listeners("agent_pre_step")
        assert [each.plugin for each in listeners] == ["policy", "late"]
        assert "outermost tier" in listeners[0].why


@pytest.mark.anyio
@pytest.mark.parametrize("named", [False, True])
async def test_what_is_merely_installed_stays_out_when_it_cannot_do_without_a_configuration(named: bool) -> None:
    @define
    class Config:
        max_bytes: int

    class Needs:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None: ...

    Needs.Config = Config  # type: ignore[attr-defined]
    source = PluginSource(name="needs", distribution="dist-needs", version="1", load=lambda: Needs)
    harness = harness_of(plugin("a"), source, plugins=["needs"] if named else [])
    if named:
        with pytest.raises(PluginConfigError, match="max_bytes"):
            await harness.__aenter__()
        return
    async with harness:
        assert order(harness) == ["a"]
        assert "max_bytes" in str(harness.failures[0].error)
