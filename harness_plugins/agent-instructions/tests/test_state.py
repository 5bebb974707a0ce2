"""What is in force, folded from the sources of messages: whole, in part, malformed, hostile."""

from __future__ import annotations

from typing import Any

import pytest
from harness_agent_instructions._state import Change, FileKey, Ledger, View, changes_in, is_ours, source_of
from hypothesis import given, strategies as st

from harness_core import Source, UserMessage
from harness_core.session import APPEND, MemoryStore, MessageTrail, Session, SurfaceReplace, UserMessageLogged


def message(name: str, *changes: Change, identity: str | None = None) -> UserMessage:
    return UserMessage(id=name, content=name, source=source_of(changes, identity))


def change(action: Any, name: str, digest: str | None = "d", directory: str | None = ".") -> Change:
    return Change(action=action, key=FileKey(directory, name), path=name, digest=digest)


def test_the_last_change_of_a_file_counts() -> None:
    view = View()
    view.take([message("1", change("set", "A.md", "1"), change("set", "A.md", "2", "sub"), identity="i")])
    view.take([message("2", change("replace", "A.md", "3"), change("remove", "A.md", None, "sub"))])
    active = view.active(FileKey(".", "A.md"))
    assert (view.identity, active and active.digest) == ("i", "3")
    assert view.active(FileKey("sub", "A.md")) is None
    assert view.directories == [".", "sub"]
    assert [each.path for each in view.in_force] == ["A.md"]
    later = view.with_messages([message("3", change("remove", "A.md", None))])
    assert later.in_force == []
    assert len(view.in_force) == 1


def test_what_a_full_list_makes_void_leaves_nothing_to_follow() -> None:
    view = View()
    view.take([message("1", change("set", "A.md", "1", "sub"), change("set", "B.md"), identity="i")])
    void = change("remove", "A.md", None, "sub")
    view.take([message("2", void, change("set", "C.md"), change("remove", "B.md", None), identity="j")])
    assert view.directories == ["."]
    assert [each.key.name for each in view.in_force] == ["C.md"]


@pytest.mark.parametrize(
    "data",
    [
        {"action": "move", "scope": [".", "A.md"], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": [".", "A.md"], "path": "A.md"},
        {"action": "set", "scope": ["."], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": [".", 3], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": [3, "A.md"], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": ["../..", "A.md"], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": ["/etc", "A.md"], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": ["", "A.md"], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": [".", "../A.md"], "path": "A.md", "digest": "d"},
        {"action": "set", "scope": [".", "A.md"], "path": None, "digest": "d"},
        {"action": "set", "scope": [".", "A.md"], "path": "A.md", "digest": 3},
        "set",
        None,
        [],
    ],
)
def test_malformed_entries_are_ignored_one_by_one(data: Any) -> None:
    good = change("set", "B.md").to_json()
    found = changes_in(Source("agent-instructions", "instructions", None, {"changes": [data, good]}))
    assert [each.key.name for each in found] == ["B.md"]


@pytest.mark.parametrize("changes", [None, "set", {"0": {}}, 3])
def test_a_source_whose_changes_are_no_list_is_ignored(changes: Any) -> None:
    assert not is_ours(Source("agent-instructions", None, None, {"changes": changes, "baseline": True}))
    assert not is_ours(Source("agent-instructions"))
    assert not is_ours(Source("user", None, None, {"changes": []}))


def test_a_list_without_a_well_formed_identity_is_no_full_list() -> None:
    for data in (
        {"baseline": 1, "baseline_identity": "i"},
        {"baseline": True},
        {"baseline": True, "baseline_identity": 1},
    ):
        view = View()
        view.take(
            [UserMessage(id="m", content="", source=Source("agent-instructions", None, None, {**data, "changes": []}))]
        )
        assert view.identity is None


def test_what_is_written_is_read_again() -> None:
    changes = [change("set", "A.md"), change("replace", "B.md", "e", None), change("remove", "C.md", None, "x/y")]
    source = Source.from_json(source_of(changes, "i").to_json())
    assert changes_in(source) == changes
    assert source.to_json()["kind"] == "agent-instructions"
    assert source.to_json()["form"] == "instructions"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ours", "other", "look", "hide"]),
            st.sampled_from(["set", "replace", "remove"]),
            st.sampled_from("AB"),
            st.booleans(),
        )
    )
)
def test_the_ledger_says_what_a_fold_over_the_surface_says(moves: list[tuple[str, str, str, bool]]) -> None:
    session = Session.create("s", cwd="/", store=MemoryStore())
    ledger = Ledger(MessageTrail(session, is_ours))

    def folded() -> View:
        view = View()
        view.take(m for m in session.messages if isinstance(m, UserMessage) and is_ours(m.source))
        return view

    for number, (move, action, name, full) in enumerate(moves):
        entries = list(session.surface.entries)
        digest = None if action == "remove" else str(number)
        if move == "ours":
            made = message(f"m{number}", change(action, name, digest), identity=str(number) if full else None)
            session.append(UserMessageLogged(message=made), APPEND)
        elif move == "other":
            session.append(UserMessageLogged(message=UserMessage(id=f"m{number}", content="x")), APPEND)
        elif move == "look":
            assert ledger.view() == folded()
        elif entries:
            covered = entries[: len(entries) // 2 + 1]
            replace = SurfaceReplace(start=covered[0], end=covered[-1], sources=covered)
            session.append(UserMessageLogged(message=UserMessage(id=f"m{number}", content="s")), replace)
    assert ledger.view() == folded()
