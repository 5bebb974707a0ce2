"""The tool registry: who sees which tool, and what a restriction does to it."""

from __future__ import annotations

import pytest

from harness_core.errors import (
    DuplicateNameError,
    InactiveOwnerError,
    JsonValueError,
    ReservedToolNameError,
    ToolRestrictionError,
)
from harness_core.host import Harness, Scope
from harness_core.models import ToolSchema
from harness_core.prompt import UNLISTED_TOOLS, PromptSettings


def visible(scope: Scope) -> list[str]:
    return [schema["name"] for schema in scope.harness.tools.schemas(scope)]


def register(scope: Scope, *names: str) -> list[object]:
    return [scope.tools.register(ToolSchema(name, f"{name} in {scope.name}"), lambda call: "done") for name in names]


@pytest.fixture
def harness() -> Harness:
    return Harness(PromptSettings(identity=False), autoload=False)


@pytest.mark.anyio
@pytest.mark.spec("TOOL-20")
async def test_assemblies_get_visible_schemas_and_know_hidden_names() -> None:
    async with Harness(PromptSettings(tool_order=["write", UNLISTED_TOOLS]), autoload=False) as harness:
        register(harness.root, "read", "write")
        scope = harness.root.child("reviewer")
        scope.tools.restrict(deny=["write"])
        # `write` is listed and known, but not visible here: silently absent (TOOL-08).
        assert [tool.name for tool in (await harness.assemble(scope)).tools] == ["read"]
        assert [tool.name for tool in (await harness.assemble()).tools] == ["write", "read"]


@pytest.mark.spec("TOOL-21")
def test_tools_shadow_by_name_along_the_chain(harness: Harness) -> None:
    register(harness.root, "read")
    scope = harness.root.child("agent")
    register(scope, "read")
    found = harness.tools.find(scope, "read")
    assert found is not None
    assert found.schema.description == "read in agent"
    assert visible(scope) == ["read"]


@pytest.mark.spec("TOOL-21", "UC-08")
@pytest.mark.anyio
async def test_a_duplicate_in_one_layer_names_both_plugins() -> None:
    class First:
        def __init__(self, name: str) -> None:
            self.name = name

        from harness_core import hookimpl as _hookimpl

        @_hookimpl
        def harness_setup(self, ctx: object) -> None:
            ctx.tools.register(ToolSchema("search"), lambda call: "")  # type: ignore[attr-defined]

    async with Harness(autoload=False) as harness:
        await harness.install(First("alpha"))
        with pytest.raises(DuplicateNameError) as caught:
            await harness.install(First("beta"))
        assert caught.value.names == ("plugin 'alpha'", "plugin 'beta'")
        assert caught.value.entry == "search"
        assert caught.value.layer == "global"


@pytest.mark.spec("TOOL-21")
def test_a_hidden_tool_is_like_one_that_does_not_exist(harness: Harness) -> None:
    register(harness.root, "read")
    scope = harness.root.child("agent")
    scope.tools.restrict(deny=["read"])
    assert harness.tools.find(scope, "read") is None
    assert harness.tools.handler(scope, "read") is None


@pytest.mark.spec("TOOL-22")
@pytest.mark.parametrize(
    ("lists", "names"),
    [
        ({}, ()),
        ({"allow": ["raed"]}, ("raed",)),
        ({"deny": ["own", "read"]}, ("own",)),
        ({"allow": ["b", "a"]}, ("a", "b")),
    ],
)
def test_refused_restrictions_change_nothing(
    harness: Harness, lists: dict[str, list[str]], names: tuple[str, ...]
) -> None:
    register(harness.root, "read", "write")
    scope = harness.root.child("agent")
    register(scope, "own")
    before = harness.tools.generation
    with pytest.raises(ToolRestrictionError) as caught:
        scope.tools.restrict(**lists)
    assert caught.value.names == names
    if names:
        assert caught.value.known == ("read", "write")
    assert harness.tools.generation == before
    assert visible(scope) == ["read", "write", "own"]


@pytest.mark.spec("TOOL-22")
def test_the_root_cannot_be_restricted(harness: Harness) -> None:
    register(harness.root, "read")
    with pytest.raises(ToolRestrictionError):
        harness.root.tools.restrict(deny=["read"])


@pytest.mark.spec("TOOL-22")
def test_an_empty_allow_hides_all_that_is_inherited_and_an_empty_deny_nothing(harness: Harness) -> None:
    register(harness.root, "read")
    scope = harness.root.child("agent")
    register(scope, "own")
    with scope.tools.restrict(deny=[]):
        assert visible(scope) == ["read", "own"]
    with scope.tools.restrict(allow=[]):
        assert visible(scope) == ["own"]


@pytest.mark.spec("TOOL-23")
def test_restrictions_intersect_reach_descendants_and_lift_one_by_one(harness: Harness) -> None:
    register(harness.root, "a", "b", "c")
    parent = harness.root.child("parent")
    child = parent.child("child")
    other = harness.root.child("other")
    first = parent.tools.restrict(allow=["a", "b"])
    second = parent.tools.restrict(deny=["a"])
    assert visible(parent) == visible(child) == ["b"]
    assert visible(other) == ["a", "b", "c"]
    first.dispose()
    assert visible(child) == ["b", "c"]
    second.dispose()
    assert visible(child) == ["a", "b", "c"]


@pytest.mark.spec("TOOL-24")
def test_lists_are_copied_and_the_filter_applies_live(harness: Harness) -> None:
    [a] = register(harness.root, "a")
    allowed = ["a"]
    scope, open_scope = harness.root.child("closed"), harness.root.child("open")
    scope.tools.restrict(allow=allowed)
    open_scope.tools.restrict(deny=["a"])
    allowed.append("b")
    register(harness.root, "b")
    assert visible(scope) == ["a"]
    assert visible(open_scope) == ["b"]
    a.dispose()  # type: ignore[attr-defined]
    assert visible(scope) == []
    register(harness.root, "a")
    assert visible(scope) == ["a"]


@pytest.mark.spec("TOOL-25", "X-15")
def test_a_parents_own_tool_passes_to_its_children_whatever_the_parent_denies(harness: Harness) -> None:
    register(harness.root, "read")
    parent = harness.root.child("parent")
    parent.tools.restrict(deny=["read"])
    register(parent, "read")
    child = parent.child("child")
    for scope in (parent, child):
        found = harness.tools.find(scope, "read")
        assert found is not None
        assert found.schema.description == "read in parent"


@pytest.mark.spec("UC-08")
def test_restrictions_may_name_the_plugin_with_the_tool(harness: Harness) -> None:
    register(harness.root, "read")
    scope = harness.root.child("agent")
    with pytest.raises(ToolRestrictionError):
        scope.tools.restrict(deny=["other:read"])
    owner = harness.root.effects.nested("a plugin")
    from harness_core.scopes import Origin

    owner.origin = Origin(scope="global", plugin="files")
    harness.tools.at(harness.root, owner).register(ToolSchema("list"), lambda call: "")
    scope.tools.restrict(deny=["files:list"])
    assert visible(scope) == ["read"]


@pytest.mark.spec("TOOL-26")
def test_changes_are_the_tool_registrys_own_and_a_raising_observer_rolls_back(harness: Harness) -> None:
    notices: list[str] = []
    harness.prompt.subscribers = lambda: [lambda: notices.append("prompt")]
    harness.tools.subscribers = lambda: [lambda: notices.append("tools")]
    [handle] = register(harness.root, "read")
    scope = harness.root.child("agent")
    scope.tools.restrict(deny=["read"]).dispose()
    handle.dispose()  # type: ignore[attr-defined]
    assert notices == ["tools"] * 4

    def veto() -> None:
        raise RuntimeError("no more tools")

    harness.tools.subscribers = lambda: [veto]
    with pytest.raises(RuntimeError, match="no more tools"):
        register(harness.root, "write")
    harness.tools.subscribers = tuple
    assert visible(harness.root) == []
    register(harness.root, "write")


@pytest.mark.anyio
@pytest.mark.spec("TOOL-27")
async def test_hiding_a_tool_leaves_independent_guidance_and_silences_bound_guidance() -> None:
    async with Harness(PromptSettings(identity=False), autoload=False) as harness:
        register(harness.root, "read")
        harness.root.prompt.section("free", "Read files.", order=1)
        harness.root.prompt.section("bound", "Use `read`.", order=2, tools=["read"])
        harness.root.prompt.section("bound-dynamic", lambda _: "Use it well.", order=3, tools=["read", "write"])
        scope = harness.root.child("agent")
        scope.tools.restrict(deny=["read"])
        texts = [section.text for section in (await harness.assemble()).sections if section.text]
        hidden = [section.text for section in (await harness.assemble(scope)).sections if section.text]
        assert texts == ["Read files.", "Use `read`.", "Use it well."]
        assert hidden == ["Read files."]


@pytest.mark.spec("TOOL-28")
def test_schemas_are_plain_copies_and_parameters_must_be_lossless_json(harness: Harness) -> None:
    harness.root.tools.register(ToolSchema("read", "", {"type": "object", "required": ["path"]}))
    plain = harness.tools.schemas(harness.root)
    plain[0]["parameters"]["required"].append("more")
    assert harness.tools.schemas(harness.root)[0]["parameters"]["required"] == ["path"]
    with pytest.raises(JsonValueError) as caught:
        ToolSchema("bad", "", {"properties": {"n": {"default": float("nan")}}})
    assert caught.value.entry == "$.properties.n.default"


@pytest.mark.spec("TOOL-10", "X-14")
def test_a_tool_cannot_be_called_like_the_marker(harness: Harness) -> None:
    with pytest.raises(ReservedToolNameError):
        harness.root.tools.register(ToolSchema(UNLISTED_TOOLS))


@pytest.mark.anyio
async def test_registering_through_a_closed_scope_is_refused(harness: Harness) -> None:
    scope = harness.root.child("agent")
    await scope.aclose()
    with pytest.raises(InactiveOwnerError):
        register(scope, "late")


def test_a_handler_may_be_registered_apart_from_its_schema(harness: Harness) -> None:
    harness.root.tools.register(ToolSchema("read"))
    assert harness.tools.handler(harness.root, "read") is None
    handle = harness.root.tools.handle("read", lambda call: "text")
    found = harness.tools.handler(harness.root, "read")
    assert found is not None and found.handler is not None
    handle.dispose()
    assert harness.tools.handler(harness.root, "read") is None
