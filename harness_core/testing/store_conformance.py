"""The contract of a session store as tests: subclass `StoreConformance`, give it a ``store`` fixture, and run pytest.

```python
class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path):
        return MyStore(tmp_path)
```

Owns no store and no knowledge of how one works.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.models.messages import UserMessage
from harness_core.session import (
    APPEND,
    Session,
    SessionClosedError,
    SessionExistsError,
    SessionLockedError,
    SessionNotFoundError,
    SessionStore,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
    list_sessions,
    read_log,
)

__all__ = ["StoreConformance"]

_FIRST = b'{"first":1}\n'
_SECOND = '{"second":"zwei, \u4e8c, \u2028"}\n'.encode()


class StoreConformance:
    """What every store of session logs must do."""

    @pytest.fixture
    def store(self) -> SessionStore:
        """The store under test, empty."""
        raise NotImplementedError("A conformance test class overrides the fixture 'store'.")

    @pytest.fixture
    def again(self, store: SessionStore) -> SessionStore:
        """The same store as another part of the program would open it; the same object unless overridden."""
        return store

    def test_is_a_store(self, store: SessionStore) -> None:
        assert isinstance(store, SessionStore)
        assert isinstance(store.durable, bool)

    def test_a_new_log_has_its_first_lines_and_what_is_appended_byte_for_byte(self, store: Any, again: Any) -> None:
        writer = store.create("s", [_FIRST, _SECOND])
        writer.append(_SECOND)
        assert list(again.read("s").lines) == [_FIRST, _SECOND, _SECOND]
        writer.close()
        assert list(again.read("s").lines) == [_FIRST, _SECOND, _SECOND]

    def test_an_appended_line_is_there_at_once_without_a_sync(self, store: Any, again: Any) -> None:
        writer = store.create("s", [_FIRST])
        for count in range(1, 6):
            writer.append(_SECOND)
            assert len(again.read("s").lines) == 1 + count
        writer.sync()
        writer.close()

    def test_an_id_is_given_once(self, store: Any, again: Any) -> None:
        store.create("s", [_FIRST]).close()
        with pytest.raises(SessionExistsError) as caught:
            again.create("s", [_SECOND])
        assert caught.value.session == "s"
        assert list(again.read("s").lines) == [_FIRST]

    def test_an_unknown_session_is_an_error_that_names_it(self, store: Any) -> None:
        for attempt in (store.read, store.open):
            with pytest.raises(SessionNotFoundError, match="nobody"):
                attempt("nobody")

    def test_a_log_has_one_writer(self, store: Any, again: Any) -> None:
        writer = store.create("s", [_FIRST])
        with pytest.raises(SessionLockedError):
            again.open("s")
        writer.close()
        second, stored = again.open("s")
        assert list(stored.lines) == [_FIRST]
        with pytest.raises(SessionLockedError):
            store.open("s")
        second.append(_SECOND)
        second.close()
        assert list(store.read("s").lines) == [_FIRST, _SECOND]

    def test_reading_needs_no_lock_and_takes_none(self, store: Any, again: Any) -> None:
        writer = store.create("s", [_FIRST])
        again.read("s")
        writer.append(_SECOND)
        assert len(again.read("s").lines) == 2
        writer.close()

    def test_a_closed_writer_refuses_and_closing_twice_is_harmless(self, store: Any, again: Any) -> None:
        writer = store.create("s", [_FIRST])
        writer.close()
        other, _ = again.open("s")
        writer.close()
        with pytest.raises(SessionLockedError):
            store.open("s")
        with pytest.raises(SessionClosedError):
            writer.append(_SECOND)
        other.close()
        assert list(store.read("s").lines) == [_FIRST]

    @pytest.mark.parametrize("session_id", ["a b", "ä/ö", "..", ".", "x" * 80, "con:1", "%2e", "A", "line\nbreak"])
    def test_any_id_names_a_log_of_its_own(self, store: Any, session_id: str) -> None:
        store.create("other", [_SECOND]).close()
        store.create(session_id, [_FIRST]).close()
        assert list(store.read(session_id).lines) == [_FIRST]
        assert list(store.read("other").lines) == [_SECOND]

    def test_a_deleted_log_is_gone_and_its_id_is_free(self, store: Any, again: Any) -> None:
        writer = store.create("s", [_FIRST])
        store.delete("s")
        writer.close()
        with pytest.raises(SessionNotFoundError):
            again.read("s")
        store.delete("s")
        again.create("s", [_SECOND]).close()
        assert list(store.read("s").lines) == [_SECOND]

    def test_heads_hold_the_first_and_the_last_line_of_each_log(self, store: Any) -> None:
        assert list(store.heads()) == []
        writer = store.create("long", [_FIRST])
        for number in range(3000):
            writer.append(b'{"line":%d,"pad":"%s"}\n' % (number, b"x" * 80))
        writer.close()
        store.create("short", [_SECOND]).close()
        heads = {head.lines[0]: head.lines[-1] for head in store.heads()}
        assert heads[_FIRST].startswith(b'{"line":2999,')
        assert heads[_SECOND] == _SECOND

    def test_a_session_goes_on_where_it_was_left(self, store: Any, again: Any) -> None:
        session = Session.create("s", cwd="/somewhere", store=store)
        _turn(session, 1, "Hello")
        events = list(session.events)
        assert list(read_log(again, "s").events) == events
        session.close()
        resumed = Session.resume("s", store=again)
        assert (list(resumed.events), resumed.cwd, resumed.repaired) == (events, "/somewhere", ())
        _turn(resumed, 2, "Again")
        resumed.close()
        assert [message.text for message in read_log(store, "s").surface.messages] == ["Hello", "Again"]
        assert [(summary.id, summary.title) for summary in list_sessions(store)] == [("s", "Hello")]

    def test_a_discarded_session_leaves_nothing(self, store: Any) -> None:
        Session.create("s", cwd="/", store=store).discard()
        assert list_sessions(store) == []
        Session.create("s", cwd="/", store=store).close()


def _turn(session: Session, turn: int, text: str) -> None:
    session.append(TurnStart(turn=turn))
    session.append(StepStart(turn=turn, step=1))
    session.append(UserMessageLogged(message=UserMessage(id=f"m{turn}", content=text)), APPEND)
    session.append(StepEnd(turn=turn, step=1))
    session.append(TurnEnd(turn=turn, reason="completed"))
