"""One assembly: what is evaluated, in which order, and what a listener or a failure can do to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest

from harness_core import (
    AssembleContext,
    ContextEntry,
    Harness,
    Literal,
    PromptAssembly,
    PromptSettings,
    Section,
    ToolProviderResult,
    ToolSchema,
    WaterfallError,
    hookimpl,
    render_context_snapshot,
    render_prompt,
)
from harness_core.errors import (
    AssemblyContentError,
    HarnessError,
    JsonValueError,
    MultipleCompleteError,
    ProviderContractError,
    SectionOrderError,
    UnknownToolsError,
)
from harness_core.models import CallConfig, RequestHeader
from harness_core.prompt import UNLISTED_TOOLS

pytestmark = pytest.mark.anyio


class Failure(Exception):
    pass


def logging_provider(log: list[str], name: str, result: Any) -> Callable[[AssembleContext], Any]:
    def provider(_: AssembleContext) -> Any:
        log.append(name)
        if isinstance(result, BaseException):
            raise result
        return result

    return provider


async def listen(harness: Harness, function: Any, **where: Any) -> Any:
    class Listener:
        name = function.__name__.replace("_", "-")
        system_prompt_assemble = staticmethod(hookimpl(specname="system_prompt_assemble")(function))

    return await harness.install(Listener(), **where)


@pytest.mark.spec("ASM-01", "X-28")
async def test_a_context_is_optional_and_every_failure_comes_from_the_awaited_call(harness: Harness) -> None:
    harness.root.prompt.section("s", "x", order=1)
    expected = await harness.assemble()
    assert await harness.assemble(AssembleContext()) == await harness.assemble(harness.root) == expected
    harness.root.prompt.section("bad", logging_provider([], "", Failure()), order=2)
    coroutine = harness.assemble()
    with pytest.raises(Failure):
        await coroutine
    with pytest.raises(TypeError, match="AssembleContext"):
        await harness.assemble("global")  # type: ignore[arg-type]


@pytest.mark.spec("ASM-02", "ASM-25", "TOOL-07")
async def test_the_order_of_evaluation(harness: Harness) -> None:
    log: list[str] = []
    harness = Harness(PromptSettings(identity=False, tool_order=["absent", UNLISTED_TOOLS]), autoload=False)
    scope = harness.root.child("agent")
    for prompt, layer in ((scope.prompt, "scope"), (harness.root.prompt, "root")):
        prompt.context(f"{layer}-context", logging_provider(log, f"{layer} context", "x"), order=1)
        prompt.section(f"{layer}-section", logging_provider(log, f"{layer} section", "x"), order=1)
        prompt.tools(logging_provider(log, f"{layer} tools", []))
        prompt.variable(f"{layer}_variable", logging_provider(log, f"{layer} variable", "x"))

    def listener(assembly: PromptAssembly) -> None:
        log.append("listener")

    async with harness:
        await listen(harness, listener)
        with pytest.raises(UnknownToolsError) as caught:
            await harness.assemble(scope)
        assert caught.value.layer == "agent"  # X-16: which scope was assembled
        in_order = ["variable", "tools", "section", "context"]
        assert log == [f"{layer} {each}" for each in in_order for layer in ("root", "scope")]


@pytest.mark.spec("ASM-03", "UC-21")
async def test_everybody_gets_the_callers_own_context(harness: Harness) -> None:
    seen: list[AssembleContext] = []
    context = AssembleContext(scope=harness.root, cwd="/srv/project", turn=3, step=2, extra={"who": "me"})

    def keep(given: AssembleContext) -> str:
        seen.append(given)
        return given.cwd or ""

    prompt = harness.root.prompt
    prompt.section("s", keep, order=1)
    prompt.context("c", keep, order=1)
    prompt.variable("cwd", keep)
    prompt.tools(lambda given: seen.append(given) or [])  # type: ignore[func-returns-value]

    def listener(context: AssembleContext) -> None:
        seen.append(context)

    async with harness:
        await listen(harness, listener)
        assembly = await harness.assemble(context)
    assert len(seen) == 5
    assert all(each is context for each in seen)
    assert assembly.variables == {"cwd": "/srv/project"}


@pytest.mark.spec("ASM-04", "SCOPE-13", "SCOPE-14")
async def test_variables_run_once_each_and_nearer_results_overwrite(harness: Harness) -> None:
    log: list[str] = []
    scope = harness.root.child("agent")
    harness.root.prompt.variable("a", logging_provider(log, "root a", "far"))
    harness.root.prompt.variable("b", logging_provider(log, "root b", None))
    scope.prompt.variable("c", logging_provider(log, "scope c", "own"))
    scope.prompt.variable("a", logging_provider(log, "scope a", None))
    assembly = await harness.assemble(scope)
    assert list(assembly.variables.items()) == [("a", None), ("b", None), ("c", "own")]
    assert log == ["root a", "root b", "scope c", "scope a"]


@pytest.mark.spec("ASM-05", "ASM-06")
async def test_variables_registered_and_disposed_on_the_way(harness: Harness) -> None:
    log: list[str] = []
    prompt = harness.root.prompt
    handles: dict[str, Any] = {}

    def first(_: object) -> str:
        log.append("first")
        if len(log) == 1:
            handles["second"].dispose()
            prompt.variable("late", logging_provider(log, "late", "x"))
            handles["first"].dispose()
        return "1"

    handles["first"] = prompt.variable("first", first)
    handles["second"] = prompt.variable("second", logging_provider(log, "second", "x"))
    assembly = await harness.assemble()
    assert log == ["first", "late"]
    assert assembly.variables == {"first": "1", "late": "x"}  # its value is kept in this assembly
    assert (await harness.assemble()).variables == {"late": "x"}


@pytest.mark.spec("ASM-06")
@pytest.mark.parametrize("sibling", [False, True])
async def test_a_provider_that_replaces_itself(harness: Harness, sibling: bool) -> None:
    log: list[str] = []
    prompt = harness.root.prompt
    handle: list[Any] = []

    def once(_: object) -> str:
        log.append("old")
        handle[0].dispose()
        prompt.variable("v", logging_provider(log, "new", "new"))
        return "old"

    handle.append(prompt.variable("v", once))
    if sibling:
        prompt.variable("sibling", logging_provider(log, "sibling", "x"))
    assembly = await harness.assemble()
    assert log == (["old", "sibling", "new"] if sibling else ["old"])
    assert assembly.variables["v"] == ("new" if sibling else "old")
    assert (await harness.assemble()).variables["v"] == "new"


@pytest.mark.spec("ASM-07", "ASM-08", "ASM-09", "ASM-10", "ASM-12", "X-06", "X-31")
@pytest.mark.parametrize("origin", ["variable", "tools", "section", "context"])
async def test_what_providers_register_counts_from_now_or_from_the_next_assembly(harness: Harness, origin: str) -> None:
    scope = harness.root.child("agent")
    done: list[int] = []

    def provider(_: object) -> Any:
        if not done:
            done.append(1)
            scope.prompt.section("late", "s", order=9)
            scope.prompt.context("late", "c", order=9)
            scope.prompt.variable("late", lambda _: "v")
            scope.prompt.tools(lambda _: [ToolSchema("late")])
            scope.prompt.suppress_runtime_context()
        return [] if origin == "tools" else "x"

    prompt = harness.root.prompt
    {
        "variable": lambda: prompt.variable("first", provider),
        "tools": lambda: prompt.tools(provider),
        "section": lambda: prompt.section("first", provider, order=1),
        "context": lambda: prompt.context("first", provider, order=1),
    }[origin]()

    def present(assembly: PromptAssembly) -> dict[str, bool]:
        return {
            "section": assembly.section("late") is not None,
            "context": assembly.context("late") is not None,
            "variable": "late" in assembly.variables,
            "tools": assembly.tool("late") is not None,
        }

    now = origin == "variable"
    expected = {"section": now, "context": now, "variable": now, "tools": now}
    assert present(await harness.assemble(scope)) == expected
    later = present(await harness.assemble(scope))
    assert later == {"section": True, "context": False, "variable": True, "tools": True}  # suppressed by then


@pytest.mark.spec("X-07")
@pytest.mark.parametrize("dispose_itself", [False, True])
async def test_a_provider_that_never_stops_registering_is_stopped(harness: Harness, dispose_itself: bool) -> None:
    prompt = harness.root.prompt
    prompt.variable("sibling", lambda _: "x")
    count = 0

    def again(_: object) -> str:
        nonlocal count, handle
        count += 1
        if dispose_itself:
            handle.dispose()
        handle = prompt.variable("v" if dispose_itself else f"v{count}", again)
        return "x"

    handle = prompt.variable("v", again)
    with pytest.raises(ProviderContractError, match="keep registering"):
        await harness.assemble()


@pytest.mark.spec("ASM-13", "ASM-14", "ASM-15", "ASM-16", "ASM-17", "X-29")
async def test_one_complete_section_is_the_whole_prompt(harness: Harness) -> None:
    prompt = harness.root.prompt
    log: list[str] = []
    prompt.variable("v", lambda _: "value")
    prompt.section("whole", ["all ", Literal("{{v}}"), " {{v}}"], order=5, complete=True)
    prompt.section("malformed", "{{ }}", order=1)
    prompt.section("evaluated", logging_provider(log, "evaluated", "x"), order=2)

    def listener(assembly: PromptAssembly) -> None:
        assert [s.name for s in assembly.sections if s.text] == ["malformed", "evaluated", "whole"]
        assembly.sections.clear()
        assembly.variables["v"] = "changed"
        assembly.tools.append(ToolSchema("added"))

    async with harness:
        await listen(harness, listener)
        assembly = await harness.assemble()
        assert [s.name for s in assembly.sections] == ["whole"]
        assert render_prompt(assembly) == "all {{v}} changed"
        assert [tool.name for tool in assembly.tools] == ["added"]
        assert log == ["evaluated"]
        prompt.section("other", "x", order=1, complete=True)
        with pytest.raises(MultipleCompleteError) as caught:
            await harness.assemble()
        assert caught.value.names == ("other", "whole")
        assert log == ["evaluated"]


@pytest.mark.spec("ASM-17")
async def test_enforcement_keeps_what_else_a_listeners_value_carries(harness: Harness) -> None:
    @attrs.define
    class Extended(PromptAssembly):
        note: str = ""

    harness.root.prompt.section("whole", "w", order=1, complete=True)
    harness.root.prompt.suppress_runtime_context()

    def listener(assembly: PromptAssembly) -> PromptAssembly:
        return Extended([Section("x", "x")], [ContextEntry("c", "c")], [], {}, note="kept")

    async with harness:
        await listen(harness, listener)
        assembly = await harness.assemble()
    assert isinstance(assembly, Extended)
    assert (assembly.note, assembly.contexts) == ("kept", [])
    assert [s.text for s in assembly.sections] == ["w"]


@pytest.mark.spec("ASM-11", "SCOPE-06", "ASM-12")
async def test_suppressed_contexts_are_not_even_asked(harness: Harness) -> None:
    log: list[str] = []
    harness.root.prompt.context("c", logging_provider(log, "asked", "x"), order=1)
    parent = harness.root.child("parent")
    child, sibling = parent.child("child"), harness.root.child("sibling")
    with parent.prompt.suppress_runtime_context():
        assert (await harness.assemble(child)).contexts == []
        assert log == []
        assert len((await harness.assemble(sibling)).contexts) == len((await harness.assemble()).contexts) == 1
    assert len((await harness.assemble(child)).contexts) == 1


@pytest.mark.spec("ASM-18", "ASM-19", "D3")
async def test_an_unenforced_result_is_returned_as_it_is(harness: Harness) -> None:
    own = PromptAssembly([Section("mine", "x")])

    async def listener(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
        await call_next()
        return own

    async with harness:
        await listen(harness, listener)
        assert await harness.assemble() is own


@pytest.mark.spec("ASM-21", "X-10", "D3")
@pytest.mark.parametrize("value", [None, "text", {"sections": []}])
async def test_a_listener_that_returns_no_assembly_is_named(harness: Harness, value: Any) -> None:
    async def forgets(assembly: PromptAssembly, call_next: Any) -> Any:
        await call_next()
        return value

    async def outer(assembly: PromptAssembly, call_next: Any) -> Any:
        result = await call_next()
        return result.sections  # would otherwise be blamed with an AttributeError

    harness.root.prompt.suppress_runtime_context()
    async with harness:
        await listen(harness, forgets)
        await listen(harness, outer)
        with pytest.raises(WaterfallError) as caught:
            await harness.assemble()
    assert (caught.value.plugin, caught.value.hook) == ("forgets", "system_prompt_assemble")
    assert (caught.value.file, caught.value.line) == (__file__, forgets.__code__.co_firstlineno)


@pytest.mark.spec("ASM-26", "TOOL-12", "D14", "UC-16")
async def test_nothing_that_a_listener_holds_reaches_the_registry(harness: Harness) -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schemas = [ToolSchema("t", "", parameters), ToolSchema("u", "", parameters)]
    parameters["properties"]["n"]["type"] = "string"  # type: ignore[index]
    harness.root.prompt.tools(lambda _: schemas)
    harness.root.prompt.section("s", "x", order=1)
    first = await harness.assemble()
    for change in (
        lambda: first.tools[0].parameters.update({"x": 1}),
        lambda: first.tools[0].parameters["properties"].pop("n"),
        lambda: first.tools[0].parameters["properties"]["n"].__setitem__("type", "null"),
    ):
        with pytest.raises(TypeError, match="attrs.evolve"):
            change()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.tools[0].name = "v"  # type: ignore[misc]
    first.sections.clear()
    first.tools.reverse()
    first.variables["v"] = "x"
    second = await harness.assemble()
    assert [s.name for s in second.sections if s.text] == ["s"]
    assert [(t.name, t.parameters["properties"]["n"]["type"]) for t in second.tools] == [
        ("t", "integer"),
        ("u", "integer"),
    ]
    assert second.variables == {}


@pytest.mark.spec("UC-16", "UC-26")
async def test_a_listener_that_tries_to_change_a_record_is_named(harness: Harness) -> None:
    harness.root.prompt.tools(lambda _: [ToolSchema("t", "", {"a": 1})])

    def edits_in_place(assembly: PromptAssembly) -> None:
        assembly.tools[0].parameters["a"] = 2

    async with harness:
        await listen(harness, edits_in_place)
        with pytest.raises(TypeError, match="cannot be changed") as caught:
            await harness.assemble()
    [note] = caught.value.__notes__
    assert "'edits-in-place'" in note
    assert f"{__file__}:{edits_in_place.__code__.co_firstlineno}" in note
    assert "scope 'global'" in note


@pytest.mark.spec("D14")
async def test_unchanged_records_keep_their_identity(harness: Harness) -> None:
    harness.root.prompt.section("s", lambda _: "equal " + "text", order=1)
    harness.root.prompt.tools(lambda _: [ToolSchema("t", "", {"a": [1]})])
    first, second = await harness.assemble(), await harness.assemble(harness.root.child("agent"))
    assert first.section("s") is second.section("s")
    again = await harness.assemble()
    assert first.tools[0] is again.tools[0]
    header = RequestHeader(config=CallConfig(), tools=first.tools)
    assert header == RequestHeader(config=CallConfig(), tools=again.tools)


@pytest.mark.spec("ASM-27")
async def test_an_assembly_in_flight_does_not_see_later_changes(harness: Harness) -> None:
    waiting, release = anyio.Event(), anyio.Event()
    results: list[PromptAssembly] = []

    async def waits(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
        waiting.set()
        await release.wait()
        result: PromptAssembly = await call_next()
        return result

    async def run() -> None:
        results.append(await harness.assemble())

    async with harness:
        handle = harness.root.prompt.section("old", "x", order=1)
        await listen(harness, waits)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await waiting.wait()
            handle.dispose()
            harness.root.prompt.section("new", "x", order=1)
            release.set()
        assert [s.name for s in results[0].sections if s.text] == ["old"]
        assert [s.name for s in (await harness.assemble()).sections if s.text] == ["new"]


@pytest.mark.spec("ASM-28", "ASM-25", "UC-26", "X-05")
@pytest.mark.parametrize("kind", ["section", "context", "variable", "tools"])
@pytest.mark.parametrize("scoped", [False, True])
async def test_a_raising_provider_stops_the_assembly_with_its_own_exception(
    harness: Harness, kind: str, scoped: bool
) -> None:
    log: list[str] = []
    scope = harness.root.child("agent")
    prompt = (scope if scoped else harness.root).prompt
    failure = Failure("boom")

    def register(name: str, provider: Any, order: int) -> Any:
        return {
            "section": lambda: prompt.section(name, provider, order=order),
            "context": lambda: prompt.context(name, provider, order=order),
            "variable": lambda: prompt.variable(name, provider),
            "tools": lambda: prompt.tools(provider),
        }[kind]()

    fine: Any = [] if kind == "tools" else "x"
    register("before", logging_provider(log, "before", fine), 1)
    handle = register("fails", logging_provider(log, "fails", failure), 2)
    register("behind", logging_provider(log, "behind", fine), 3)

    def listener(assembly: PromptAssembly) -> None:
        log.append("listener")

    async with harness:
        await listen(harness, listener)
        with pytest.raises(Failure) as caught:
            await harness.assemble(scope)
        assert caught.value is failure
        assert log == ["before", "fails"]
        [note] = failure.__notes__
        assert kind in note
        assert ("'fails'" in note) or kind == "tools"
        assert f"layer {'agent' if scoped else 'global'!r}" in note
        handle.dispose()
        log.clear()
        await harness.assemble(scope)
        assert log == ["before", "behind", "listener"]


async def returns_coroutine() -> str:
    return ""


@pytest.mark.spec("X-04", "X-11", "TOOL-14")
@pytest.mark.parametrize("kind", ["section", "context", "variable", "tools"])
@pytest.mark.parametrize("value", [3, b"x", {"a": 1}, "coroutine", None])
async def test_a_provider_that_returns_the_wrong_kind_is_named(harness: Harness, kind: str, value: Any) -> None:
    if (kind, value) == ("variable", None):
        return
    prompt = harness.root.prompt

    def provider(_: object) -> Any:
        return returns_coroutine() if value == "coroutine" else value

    {
        "section": lambda: prompt.section("bad", provider, order=1),
        "context": lambda: prompt.context("bad", provider, order=1),
        "variable": lambda: prompt.variable("bad", provider),
        "tools": lambda: prompt.tools(provider),
    }[kind]()
    for _ in range(2):  # never remembered
        with pytest.raises(ProviderContractError) as caught:
            await harness.assemble()
        assert isinstance(caught.value, TypeError)
        if kind != "tools":
            assert caught.value.entry == "bad"


@pytest.mark.spec("TOOL-12", "TOOL-14", "X-12")
async def test_tool_schemas_are_checked_where_they_come_from(harness: Harness) -> None:
    handle = harness.root.prompt.tools(lambda _: [{"name": "t"}])  # type: ignore[list-item]
    with pytest.raises(ProviderContractError, match="dict among its schemas"):
        await harness.assemble()
    handle.dispose()
    deep: Any = "end"
    for _ in range(5000):
        deep = {"a": deep}
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for parameters in (deep, loop, {"d": object()}, {1: "x"}, {"n": float("inf")}, {"s": "\ud800"}, {"f": print}):
        with pytest.raises(JsonValueError):
            ToolSchema("t", "", parameters)


@pytest.mark.spec("TOOL-13", "TOOL-05", "TOOL-04")
async def test_ordering_is_done_before_the_waterfall_and_names_are_not_policed(harness: Harness) -> None:
    harness.root.prompt.tools(lambda _: [ToolSchema("b", "1"), ToolSchema(""), ToolSchema("b", "2")])

    def listener(assembly: PromptAssembly) -> None:
        assembly.tools.insert(0, ToolSchema("z"))

    async with harness:
        await listen(harness, listener)
        tools = (await harness.assemble()).tools
    assert [(tool.name, tool.description) for tool in tools] == [("z", ""), ("", ""), ("b", "1"), ("b", "2")]


@pytest.mark.spec("TOOL-09", "X-13")
async def test_a_visible_tool_is_known_whatever_its_provider_lists() -> None:
    harness = Harness(PromptSettings(tool_order=["seen", "hidden", UNLISTED_TOOLS]), autoload=False)
    harness.root.prompt.tools(lambda _: ToolProviderResult([ToolSchema("seen"), ToolSchema("a")], ["hidden"]))
    assert [tool.name for tool in (await harness.assemble()).tools] == ["seen", "a"]


@pytest.mark.spec("TOOL-12")
async def test_a_list_that_a_provider_changes_in_place_is_seen(harness: Harness) -> None:
    schemas = [ToolSchema("a")]
    parts: list[Any] = ["one"]
    harness.root.prompt.tools(lambda _: schemas)
    harness.root.prompt.section("s", lambda _: parts, order=1)
    await harness.assemble()
    schemas.append(ToolSchema("b"))
    parts[0] = "two"
    assembly = await harness.assemble()
    assert [tool.name for tool in assembly.tools] == ["a", "b"]
    assert render_prompt(assembly) == "two"


@pytest.mark.spec("INV-02", "X-19")
@pytest.mark.parametrize(
    "edit",
    [
        lambda a: a.sections.append("text"),
        lambda a: a.sections.append(ContextEntry("c", "x")),
        lambda a: a.contexts.insert(0, None),
        lambda a: a.tools.extend([{"name": "t"}]),
        lambda a: a.tools.__setitem__(slice(0, 0), ["t"]),
        lambda a: setattr(a, "sections", ["x"]),
        lambda a: a.variables.__setitem__("v", 3),
        lambda a: a.variables.update(V="x"),
        lambda a: setattr(a, "variables", {"bad name": "x"}),
        lambda a: setattr(a, "variables", None),
    ],
)
async def test_foreign_content_is_refused_in_the_listeners_own_line(harness: Harness, edit: Any) -> None:
    def puts(assembly: PromptAssembly) -> None:
        edit(assembly)

    async with harness:
        await listen(harness, puts)
        with pytest.raises(AssemblyContentError) as caught:
            await harness.assemble()
    assert any("'puts'" in note for note in caught.value.__notes__)


@pytest.mark.spec("INV-01", "INV-02", "INV-03", "X-19")
@pytest.mark.parametrize(
    ("edit", "entry"),
    [
        (lambda a: a.sections.append(Section("s", "again")), "s"),
        (lambda a: a.contexts.append(ContextEntry("c", "again")), "c"),
        (lambda a: a.sections.append(Section("", "nameless")), ""),
        (lambda a: a.tools.append(ToolSchema("")), ""),
        (lambda a: setattr(a, "sections", [*a.sections, Section("s", "x")]), "s"),
    ],
)
@pytest.mark.parametrize("checked", [True, False])
async def test_optional_invariants_name_the_listener_behind_a_clash(edit: Any, entry: str, checked: bool) -> None:
    async with Harness(PromptSettings(identity=False, invariants=checked), autoload=False) as harness:
        harness.root.prompt.section("s", "x", order=1)
        harness.root.prompt.context("c", "x", order=1)

        def innocent(assembly: PromptAssembly) -> None:
            assembly.sections.append(Section("other", "x"))

        async def clashes(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
            result: PromptAssembly = await call_next()
            helper(result)
            return result

        def helper(assembly: PromptAssembly) -> None:
            edit(assembly)

        await listen(harness, innocent)
        await listen(harness, clashes)
        if not checked:
            await harness.assemble()
            return
        with pytest.raises(AssemblyContentError) as caught:
            await harness.assemble()
        assert (caught.value.plugin, caught.value.entry) == ("clashes", entry)


@pytest.mark.spec("INV-02", "TOOL-04")
async def test_duplicate_tools_pass_the_invariants() -> None:
    async with Harness(PromptSettings(invariants=True), autoload=False) as harness:

        def doubles(assembly: PromptAssembly) -> None:
            assembly.tools.extend([ToolSchema("t"), ToolSchema("t")])

        await listen(harness, doubles)
        assert len((await harness.assemble()).tools) == 2


@pytest.mark.spec("X-21")
async def test_recovering_from_a_listener_does_not_roll_its_changes_back(harness: Harness) -> None:
    async def fails(assembly: PromptAssembly) -> None:
        assembly.sections.append(Section("left behind", "x"))
        raise Failure

    async def recovers(assembly: PromptAssembly, call_next: Any) -> PromptAssembly:
        try:
            result: PromptAssembly = await call_next()
        except Failure:
            return assembly
        return result

    async with harness:
        await listen(harness, fails)
        await listen(harness, recovers)
        assert (await harness.assemble()).section("left behind") is not None


@pytest.mark.spec("X-30", "ASM-27")
async def test_cancellation_counts_where_something_waits(harness: Harness) -> None:
    harness.root.prompt.section("s", "x", order=1)
    with anyio.CancelScope() as scope:
        scope.cancel()
        assert (await harness.assemble()).section("s") is not None


@pytest.mark.spec("UC-09")
async def test_constraints_between_named_sections(harness: Harness) -> None:
    prompt = harness.root.prompt
    prompt.section("c", "x", order=1, after="d")
    prompt.section("a", "x", order=2, before=["c", "unknown"])
    prompt.section("b", "x", order=3)
    prompt.section("d", "x", order=4)
    assert [s.name for s in (await harness.assemble()).sections if s.text] == ["a", "b", "d", "c"]
    prompt.section("e", "x", order=5, after="c", before="d")
    with pytest.raises(SectionOrderError) as caught:
        await harness.assemble()
    assert set(caught.value.names) == {"c", "d", "e"}
    assert isinstance(caught.value, HarnessError)


@pytest.mark.spec("RND-18")
async def test_variables_that_a_listener_changes_count_when_rendering(harness: Harness) -> None:
    harness.root.prompt.variable("v", lambda _: "old")
    harness.root.prompt.section("s", "{{v}}", order=1)
    harness.root.prompt.context("c", "{{v}}", order=1)

    def listener(assembly: PromptAssembly) -> None:
        assembly.variables["v"] = "new"

    async with harness:
        activation = await listen(harness, listener)
        assembly = await harness.assemble()
        assert render_prompt(assembly) == "new"
        assert render_context_snapshot(assembly).endswith("new")
        await activation.aclose()
        assert render_prompt(await harness.assemble()) == "old"
