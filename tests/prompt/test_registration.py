"""Registering: what is taken, what is refused and named, and what a notice of change may do."""

from __future__ import annotations

import functools
import logging
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from harness_core import IDENTITY_SECTION, PERSONA_SECTION, Harness, Literal, PromptSettings, ToolSchema
from harness_core.errors import (
    DuplicateNameError,
    HarnessError,
    InactiveOwnerError,
    InvalidNameError,
    InvalidOrderError,
    InvalidTextError,
    InvalidVariableNameError,
    RegistrationError,
    SettingsError,
)
from harness_core.prompt import UNLISTED_TOOLS
from harness_core.scopes import Origin

pytestmark = pytest.mark.anyio


class Notices:
    """Counts notices; may be told to raise."""

    def __init__(self, harness: Harness) -> None:
        self.count = 0
        self.raises: list[BaseException] = []
        before = harness.prompt.subscribers
        harness.prompt.subscribers = lambda: [*before(), self]

    def __call__(self) -> None:
        self.count += 1
        if self.raises:
            raise self.raises.pop(0)


@pytest.fixture
def notices(harness: Harness) -> Notices:
    return Notices(harness)


def register_all(prompt: Any) -> list[Any]:
    return [
        prompt.section("n", "x", order=1),
        prompt.context("n", "x", order=1),
        prompt.variable("n", lambda _: "x"),
        prompt.tools(lambda _: [ToolSchema("n")]),
        prompt.suppress_runtime_context(),
    ]


@pytest.mark.spec("REG-01", "REG-06", "REG-12")
async def test_five_kinds_with_names_of_their_own_each_notified_once(harness: Harness, notices: Notices) -> None:
    handles = register_all(harness.root.prompt)
    assert notices.count == 5
    assembly = await harness.assemble()
    assert (assembly.section("n"), assembly.tool("n"), assembly.variables["n"]) != (None, None, None)
    assert notices.count == 5
    for handle in handles:
        handle.dispose()
        handle.dispose()
    assert notices.count == 10


@pytest.mark.spec("REG-04", "REG-05")
@pytest.mark.parametrize(
    "order",
    [
        float("nan"), float("inf"), float("-inf"), True, False, "1", None, 10**400, Decimal(1), Fraction(1, 2), [1], 1j,
    ],
)  # fmt: skip
async def test_an_order_must_be_a_finite_int_or_float(harness: Harness, notices: Notices, order: Any) -> None:
    prompt = harness.root.prompt
    prompt.section("taken", "x", order=1)
    for register in (prompt.section, prompt.context):
        for name in ("free", "taken"):  # the order is checked before the name
            with pytest.raises(InvalidOrderError) as caught:
                register(name, "x", order=order)
            assert isinstance(caught.value, TypeError)
            assert caught.value.entry == name
    assert notices.count == 1
    prompt.section("free", "x", order=2)


@pytest.mark.spec("REG-02", "REG-03")
async def test_orders_sort_ascending_and_ties_keep_their_order_of_registration(harness: Harness, sections: Any) -> None:
    for name, order in (("a", 5), ("b", -0.0), ("c", 1e308), ("d", 0), ("e", -7.5), ("f", 5.0)):
        harness.root.prompt.section(name, name, order=order)
    assert [name for name, _ in await sections()] == ["e", "b", "d", "a", "f", "c"]


@pytest.mark.spec("REG-05")
async def test_a_duplicate_is_refused_by_name_layer_and_owners(
    harness: Harness, notices: Notices, sections: Any
) -> None:
    owner = harness.root.effects.nested("a plugin")
    owner.origin = Origin(scope="global", plugin="second", distribution="dist-second", version="2")
    harness.root.prompt.section("s", "first", order=1)
    with pytest.raises(DuplicateNameError) as caught:
        harness.prompt.at(harness.root, owner).section("s", "second", order=1)
    error = caught.value
    assert (error.entry, error.kind, error.layer, error.plugin) == ("s", "section", "global", "second")
    assert "through that agent's scope" in error.remedy
    scope = harness.root.child("agent")
    scope.prompt.section("s", "scoped", order=1)
    with pytest.raises(DuplicateNameError) as caught:
        scope.prompt.section("s", "again", order=1)
    assert caught.value.layer == "agent"
    assert "inside this scope" in caught.value.remedy
    assert notices.count == 2
    assert await sections() == [("s", "first")]
    assert await sections(scope) == [("s", "scoped")]


@pytest.mark.spec("REG-07", "X-01", "X-02")
@pytest.mark.parametrize("name", ["", None, 3, b"s", ["s"]])
async def test_names_are_non_empty_strings(harness: Harness, notices: Notices, name: Any) -> None:
    prompt = harness.root.prompt
    for refused in (
        lambda: prompt.section(name, "x", order=1),
        lambda: prompt.context(name, "x", order=1),
        lambda: prompt.variable(name, lambda _: "x"),
    ):
        with pytest.raises((InvalidNameError, InvalidVariableNameError)):
            refused()
    assert notices.count == 0


@pytest.mark.spec("REG-08")
@pytest.mark.parametrize(
    "name", ["1a", "_a", "A", "aB", "a-b", "a.b", "a b", "ä", "a٣", "a\n", "\na", "__class__", "a{", "null "]
)
async def test_a_variable_name_is_what_a_reference_can_spell(harness: Harness, name: str) -> None:
    with pytest.raises(InvalidVariableNameError) as caught:
        harness.root.prompt.variable(name, lambda _: "x")
    assert caught.value.entry == name
    assert repr(name)[:50] in str(caught.value)


@pytest.mark.spec("REG-08")
@pytest.mark.parametrize("name", ["a", "a1_b", "constructor", "items", "keys", "null"])
async def test_odd_but_legal_variable_names(harness: Harness, name: str) -> None:
    harness.root.prompt.variable(name, lambda _: "x")
    assert (await harness.assemble()).variables == {name: "x"}


@pytest.mark.spec("REG-09", "X-03")
async def test_what_is_registered_is_frozen(harness: Harness, sections: Any) -> None:
    parts: list[Any] = ["a", Literal("{{")]
    harness.root.prompt.section("s", parts, order=1)
    parts.append("later")
    assert await sections() == [("s", ("a", Literal("{{")))]
    section = (await harness.assemble()).section("s")
    with pytest.raises(AttributeError):
        section.text = "changed"  # type: ignore[union-attr,misc]


@pytest.mark.spec("REG-10", "REG-11")
async def test_an_old_handle_never_touches_a_newer_entry(harness: Harness, sections: Any) -> None:
    prompt = harness.root.prompt
    old = prompt.section("a", "old", order=1)
    prompt.section("b", "b", order=1)
    old.dispose()
    prompt.section("a", "new", order=1)
    old.dispose()
    assert await sections() == [("b", "b"), ("a", "new")]


@pytest.mark.spec("REG-13", "X-18")
async def test_a_raising_observer_vetoes_a_registration(harness: Harness, notices: Notices, sections: Any) -> None:
    later = Notices(harness)
    veto = RuntimeError("no")
    notices.raises = [veto]
    with pytest.raises(RuntimeError) as caught:
        harness.root.prompt.section("s", "x", order=1)
    assert caught.value is veto
    assert (notices.count, later.count) == (2, 0)  # the roll-back is told to those who heard of it
    assert await sections() == []
    assert len([label for label in harness.root.effects.labels() if "'s'" in label]) == 0
    harness.root.prompt.section("s", "y", order=1)
    assert await sections() == [("s", "y")]


@pytest.mark.spec("REG-13", "X-18")
async def test_an_observer_that_fails_on_the_roll_back_too_does_not_hide_its_veto(
    harness: Harness, notices: Notices, sections: Any, caplog: pytest.LogCaptureFixture
) -> None:
    notices.raises = [RuntimeError("first"), RuntimeError("second")]
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match="first"):
        harness.root.prompt.section("s", "x", order=1)
    assert "second" in caplog.text
    assert await sections() == []


@pytest.mark.spec("REG-15", "X-18")
async def test_a_raising_observer_never_makes_a_disposal_fail(
    harness: Harness, notices: Notices, sections: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handle = harness.root.prompt.section("s", "x", order=1)
    later = Notices(harness)
    notices.raises = [RuntimeError("too late")]
    with caplog.at_level(logging.ERROR):
        handle.dispose()
    assert "too late" in caplog.text
    assert later.count == 1
    assert await sections() == []


@pytest.mark.spec("REG-16")
async def test_an_owner_takes_its_own_and_nothing_else(harness: Harness, sections: Any) -> None:
    owner = harness.root.effects.nested("a plugin")
    harness.root.prompt.section("kept", "x", order=1)
    register_all(harness.prompt.at(harness.root, owner))
    await owner.aclose()
    assert await sections() == [("kept", "x")]
    assert (await harness.assemble()).section(PERSONA_SECTION) is not None


@pytest.mark.spec("REG-18")
async def test_the_same_provider_registered_twice_counts_twice(harness: Harness) -> None:
    def provider(_: object) -> list[ToolSchema]:
        return [ToolSchema("t")]

    first = harness.root.prompt.tools(provider)
    harness.root.prompt.tools(provider)
    one = harness.root.prompt.suppress_runtime_context()
    two = harness.root.prompt.suppress_runtime_context()
    harness.root.prompt.context("c", "x", order=1)
    assert len((await harness.assemble()).tools) == 2
    first.dispose()
    one.dispose()
    assembly = await harness.assemble()
    assert (len(assembly.tools), assembly.contexts) == (1, [])
    two.dispose()
    assert len((await harness.assemble()).contexts) == 1


@pytest.mark.spec("REG-14", "REG-19", "REG-20", "REG-23", "X-28")
async def test_settings_and_built_ins() -> None:
    default = Harness(autoload=False)
    assembly = await default.assemble()
    assert [(s.name, s.order) for s in assembly.sections] == [(IDENTITY_SECTION, -100), (PERSONA_SECTION, 0)]
    assert assembly.sections[1].text == ""
    nothing = PromptSettings(None, identity=None, runtime_context=None, tool_order=None)  # type: ignore[arg-type]
    assert nothing == PromptSettings()
    off = Harness(PromptSettings("P", identity=False, runtime_context=False), autoload=False)
    off.root.prompt.context("c", "x", order=1)
    off.root.prompt.section(IDENTITY_SECTION, "mine", order=-100)
    assembly = await off.assemble()
    assert [s.text for s in assembly.sections] == ["mine", "P"]
    assert assembly.contexts == []
    assert default.prompt.generation == off.prompt.generation - 2 == 3  # two built-ins and the tool registry's provider


@pytest.mark.spec("REG-14")
async def test_the_persona_is_taken_globally_shadowed_in_scopes_and_first_among_zeros(harness: Harness) -> None:
    with pytest.raises(DuplicateNameError):
        harness.root.prompt.section(PERSONA_SECTION, "x", order=0)
    harness.root.prompt.section("zero", "z", order=0)
    scope = harness.root.child("agent")
    scope.prompt.section(PERSONA_SECTION, "mine", order=0)
    assert [s.text for s in (await harness.assemble(scope)).sections] == ["mine", "z"]


@pytest.mark.spec("REG-19", "X-26")
@pytest.mark.parametrize(
    "values", [{"persona": 3}, {"identity": "yes"}, {"runtime_context": 1}, {"tool_order": "read"}, {"tool_order": [3]}]
)
async def test_settings_of_the_wrong_type_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        PromptSettings(**values)
    assert caught.value.entry == next(iter(values))


@pytest.mark.spec("X-26", "TOOL-11")
async def test_the_order_list_is_copied() -> None:
    order = ["a", UNLISTED_TOOLS]
    settings = PromptSettings(tool_order=order)
    order.clear()
    assert settings.tool_order == ("a", UNLISTED_TOOLS)


@pytest.mark.spec("REG-21")
async def test_what_an_observer_registers_in_a_notice_stays_when_the_outer_one_is_rolled_back(
    harness: Harness, sections: Any
) -> None:
    other = harness.root.effects.nested("other")
    done: list[int] = []

    def observer() -> None:
        if not done:
            done.append(1)
            harness.prompt.at(harness.root, other).section("nested", "x", order=1)
            raise RuntimeError("veto")

    harness.prompt.subscribers = lambda: [observer]
    with pytest.raises(RuntimeError):
        harness.root.prompt.section("outer", "x", order=1)
    assert await sections() == [("nested", "x")]


@pytest.mark.spec("REG-22")
async def test_an_observer_sees_the_new_state(harness: Harness) -> None:
    seen: list[list[str]] = []

    def observer() -> None:
        coroutine = harness.assemble()
        with pytest.raises(StopIteration) as stop:
            coroutine.send(None)  # nothing awaits before the waterfall
        seen.append([s.name for s in stop.value.value.sections if s.text])

    harness.prompt.subscribers = lambda: [observer]
    handle = harness.root.prompt.section("s", "x", order=1)
    handle.dispose()
    assert seen == [["s"], []]


@pytest.mark.spec("SCOPE-11")
async def test_arguments_are_checked_before_the_owner(harness: Harness, notices: Notices) -> None:
    scope = harness.root.child("agent")
    await scope.aclose()
    with pytest.raises(InvalidOrderError):
        scope.prompt.section("s", "x", order=float("nan"))
    with pytest.raises(InvalidVariableNameError):
        scope.prompt.variable("A", lambda _: "x")
    for register in (
        lambda: scope.prompt.section("s", "x", order=1),
        lambda: scope.prompt.variable("a", lambda _: "x"),
        lambda: scope.prompt.tools(lambda _: []),
        scope.prompt.suppress_runtime_context,
    ):
        with pytest.raises(InactiveOwnerError):
            register()
    assert notices.count == 0
    assert harness.prompt.layer(scope) is None


async def coroutine_function(_: object) -> str:
    return ""


def generator_function(_: object) -> Any:
    yield ""


async def async_generator_function(_: object) -> Any:
    yield ""


class AsyncCall:
    async def __call__(self, _: object) -> str:
        return ""


@pytest.mark.spec("D4", "X-11")
@pytest.mark.parametrize(
    "provider",
    [
        coroutine_function,
        generator_function,
        async_generator_function,
        AsyncCall(),
        functools.partial(coroutine_function),
        AsyncCall().__call__,
    ],
)
async def test_providers_are_plain_functions(harness: Harness, notices: Notices, provider: Any) -> None:
    prompt = harness.root.prompt
    for register in (
        lambda: prompt.section("s", provider, order=1),
        lambda: prompt.context("c", provider, order=1),
        lambda: prompt.variable("v", provider),
        lambda: prompt.tools(provider),
    ):
        with pytest.raises(InvalidTextError) as caught:
            register()
    if provider is not generator_function:
        assert "waterfall" in caught.value.remedy
    assert notices.count == 0


@pytest.mark.parametrize("text", [None, 3, b"x", ["a", 3], [None], {"a": 1}])
async def test_a_text_is_a_str_a_literal_or_a_sequence_of_both(harness: Harness, notices: Notices, text: Any) -> None:
    for register in (harness.root.prompt.section, harness.root.prompt.context):
        with pytest.raises(InvalidTextError) as caught:
            register("s", text, order=1)
        assert caught.value.entry == "s"
    assert notices.count == 0


@pytest.mark.parametrize("flag", ["complete", "interpolate"])
@pytest.mark.spec("ASM-13")
async def test_flags_are_booleans(harness: Harness, flag: str) -> None:
    for value in (1, "true", None):
        with pytest.raises(RegistrationError):
            harness.root.prompt.section("s", "x", order=1, **{flag: value})  # type: ignore[arg-type]


async def test_a_variable_takes_a_provider_and_says_how_to_write_one(harness: Harness) -> None:
    with pytest.raises(RegistrationError, match="lambda context"):
        harness.root.prompt.variable("city", "Paris")  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="missing"):
        harness.root.prompt.variable("city", lambda _: "Paris", missing="ignore")  # type: ignore[arg-type]


@pytest.mark.spec("X-27")
async def test_every_registration_error_ends_with_its_code(harness: Harness) -> None:
    with pytest.raises(HarnessError) as caught:
        harness.root.prompt.section("od\nd, 'name'", "x", order=None)  # type: ignore[arg-type]
    assert str(caught.value).endswith("[invalid-order]")
    assert "od\\nd" in str(caught.value)
