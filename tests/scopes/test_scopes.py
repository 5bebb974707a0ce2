"""The tree of scopes: who sees what, and who ends with whom."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given, strategies as st

from harness_core import Harness, PromptSettings
from harness_core.errors import InactiveOwnerError, ScopeAlreadyBoundError, ScopeCycleError, ScopeError
from harness_core.scopes import ScopeNode


def names(chain: tuple[ScopeNode, ...]) -> list[str]:
    return [scope.name for scope in chain]


@pytest.mark.spec("SCOPE-01", "SCOPE-02")
def test_a_chain_runs_from_the_scope_to_the_root() -> None:
    root = ScopeNode("global")
    leaf = root.child("top").child("leaf")
    assert names(leaf.chain()) == ["leaf", "top", "global"]
    assert names(root.chain()) == ["global"]
    assert root.is_root
    assert leaf != root.child("leaf")


@pytest.mark.anyio
@pytest.mark.spec("SCOPE-02")
async def test_lifetime_may_be_nested_without_visibility() -> None:
    root = ScopeNode("global")
    outer = root.child("outer")
    inner = outer.child("inner", inherit=root)
    assert names(inner.chain()) == ["inner", "global"]
    await outer.aclose()
    assert not inner.active
    assert root.active


@pytest.mark.spec("SCOPE-03")
def test_a_scope_has_its_parent_for_good_unless_it_is_moved() -> None:
    root = ScopeNode("global")
    scope = root.child("a")
    for parent in (root, scope, root.child("b")):
        with pytest.raises(ScopeAlreadyBoundError):
            scope.bind(parent)
    assert names(scope.chain()) == ["a", "global"]


@pytest.mark.spec("SCOPE-04", "SCOPE-12")
def test_a_cycle_is_refused_and_changes_nothing() -> None:
    root = ScopeNode("global")
    top = root.child("top")
    leaf = top.child("mid").child("leaf")
    for target in (top, leaf):
        with pytest.raises(ScopeCycleError) as caught:
            top.relink(target)
        assert caught.value.names == ("top", target.name)
    with pytest.raises(ScopeError):
        root.relink(leaf)
    assert names(leaf.chain()) == ["leaf", "mid", "top", "global"]


@pytest.mark.spec("SCOPE-12")
def test_moving_a_scope_moves_those_below_it_at_once() -> None:
    root = ScopeNode("global")
    left, right = root.child("left"), root.child("right")
    leaf = left.child("mid").child("leaf")
    assert names(leaf.chain()) == ["leaf", "mid", "left", "global"]
    leaf.chain()[1].relink(right)
    assert names(leaf.chain()) == ["leaf", "mid", "right", "global"]


@pytest.mark.spec("X-09")
def test_a_parent_must_be_a_scope_of_the_same_tree() -> None:
    root, other = ScopeNode("global"), ScopeNode("other")
    scope = root.child("a")
    for parent in (other, None, "global"):
        with pytest.raises(ScopeError):
            scope.relink(parent)  # type: ignore[arg-type]
    with pytest.raises(ScopeError):
        root.child("b", inherit=other)


@pytest.mark.anyio
@pytest.mark.spec("SCOPE-21", "X-08", "EFF-12")
async def test_a_refused_child_leaves_no_trace() -> None:
    root = ScopeNode("global")
    scope = root.child("a")
    await scope.aclose()
    with pytest.raises(InactiveOwnerError):
        scope.child("b")
    closed = root.effects.nested("closed")
    await closed.aclose()
    before = len(root.effects)
    with pytest.raises(InactiveOwnerError):
        root.child("c", owner=closed)
    assert len(root.effects) == before


@pytest.mark.anyio
@pytest.mark.spec("SCOPE-10")
async def test_a_closed_scope_still_sees_its_ancestors() -> None:
    harness = Harness(PromptSettings(identity=False), autoload=False)
    top = harness.root.child("top")
    scope = top.child("leaf")
    harness.root.prompt.section("g", "global", order=1)
    top.prompt.section("t", "top", order=2)
    scope.prompt.section("l", "leaf", order=3)
    await scope.aclose()
    assert [s.name for s in (await harness.assemble(scope)).sections if s.text] == ["g", "t"]


@pytest.mark.anyio
@pytest.mark.spec("SCOPE-20")
async def test_two_owners_share_the_layer_of_one_scope_and_undo_only_their_own() -> None:
    harness = Harness(PromptSettings(identity=False), autoload=False)
    scope = harness.root.child("agent")
    owner = scope.effects.nested("a plugin")
    scope.prompt.section("own", "x", order=1)
    harness.prompt.at(scope, owner).section("plugin", "x", order=2)
    with pytest.raises(Exception, match="already registered in scope 'agent'"):
        harness.prompt.at(scope, owner).section("own", "y", order=1)
    await owner.aclose()
    assert [s.name for s in (await harness.assemble(scope)).sections if s.text] == ["own"]


@pytest.mark.anyio
@pytest.mark.spec("SCOPE-09", "SCOPE-16", "X-34")
async def test_layers_come_with_the_first_registration_and_go_with_the_last() -> None:
    harness = Harness(PromptSettings(identity=False), autoload=False)
    scope = harness.root.child("agent")
    await harness.assemble(scope)
    assert harness.prompt.layer(scope) is None
    handles = [
        scope.prompt.section("s", "x", order=1),
        scope.prompt.context("c", "x", order=1),
        scope.prompt.variable("v", lambda _: "x"),
        scope.prompt.tools(lambda _: []),
        scope.prompt.suppress_runtime_context(),
    ]
    assert harness.prompt.layer(scope) is not None
    with pytest.raises(Exception, match="already"):
        scope.prompt.section("s", "y", order=1)
    for handle in handles[:-1]:
        handle.dispose()
        assert scope in harness.prompt.layers()
    handles[-1].dispose()
    assert scope not in harness.prompt.layers()
    with pytest.raises(Exception, match="order"):
        scope.prompt.section("s", "y", order=float("nan"))
    assert harness.prompt.layer(scope) is None


@pytest.mark.anyio
@pytest.mark.spec("X-34")
async def test_a_closed_scope_is_not_kept_alive() -> None:
    harness = Harness(autoload=False)
    scope = harness.root.child("agent")
    scope.prompt.section("s", "x", order=1)
    await harness.assemble(scope)
    await scope.aclose()
    dead = weakref.ref(scope)
    del scope
    gc.collect()
    assert dead() is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=25))
def test_whatever_is_moved_the_tree_stays_a_tree(moves: list[tuple[int, int]]) -> None:
    root = ScopeNode("global")
    scopes = [root.child(str(number)) for number in range(6)]
    for moved, target in moves:
        before = scopes[target].chain()
        try:
            scopes[moved].relink(scopes[target])
        except ScopeCycleError:
            assert scopes[moved] in before
        for scope in scopes:
            chain = scope.chain()
            assert chain[0] is scope
            assert chain[-1] is root
            assert len(set(chain)) == len(chain)
