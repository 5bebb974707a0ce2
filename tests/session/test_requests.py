"""Headers, requests, their digests, and rebuilding all of it from the log alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from harness_core.models import CallConfig, ModelRequest, RequestHeader, ToolSchema, UserMessage
from harness_core.session import (
    APPEND,
    Event as LogEvent,
    FileStore,
    HeaderWritten,
    InboxSpliced,
    LogOrderError,
    RequestDispatch,
    Session,
    SessionError,
    SessionSeeded,
    StepStart,
    SurfaceReplace,
    TurnStart,
    UserMessageLogged,
    check_request,
    header_digest,
    read_log,
    rebuild_requests,
    replay_inbox,
    verify,
)
from harness_core.session.events import HeaderReason
from harness_core.session.header import due, header_from_json, header_to_json, schema_from_json, schema_to_json


def user(text: str) -> UserMessageLogged:
    return UserMessageLogged(message=UserMessage(id=text, content=text))


def dispatch(session: Session, attempt: int = 1) -> ModelRequest:
    session.append(RequestDispatch(turn=1, step=1, attempt=attempt, digest=session.request_digest()))
    return session.request()


@pytest.fixture
def open_step(session: Session) -> Session:
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    return session


@pytest.mark.spec("HDR-01")
def test_a_header_s_json_leaves_out_what_is_empty(header: RequestHeader) -> None:
    empty = RequestHeader(config=CallConfig(model="m"))
    assert header_to_json(empty, schema_to_json) == {"config": {"model": "m"}}
    full = attrs.evolve(header, supplied={"model", "effort"})
    written = header_to_json(full, schema_to_json)
    assert list(written) == ["config", "supplied", "system", "tools"]
    assert written["supplied"] == ["effort", "model"]
    assert header_from_json(json.loads(json.dumps(written)), schema_from_json) == full


CHANGES: list[Callable[[RequestHeader], RequestHeader]] = [
    lambda h: attrs.evolve(h, config=attrs.evolve(h.config, temperature=0.5)),
    lambda h: attrs.evolve(h, config=attrs.evolve(h.config, extra={"k": 1})),
    lambda h: attrs.evolve(h, supplied={"model"}),
    lambda h: attrs.evolve(h, system=h.system + " "),
    lambda h: attrs.evolve(h, tools=h.tools[::-1]),
    lambda h: attrs.evolve(h, tools=h.tools[:1]),
    lambda h: attrs.evolve(h, tools=(attrs.evolve(h.tools[0], description="Other."), *h.tools[1:])),
    lambda h: attrs.evolve(h, tools=(ToolSchema("look", "Look at something.", {"type": "array"}), *h.tools[1:])),
]


@pytest.mark.spec("HDR-02", "HDR-03")
@pytest.mark.parametrize("change", CHANGES)
def test_a_header_is_written_again_when_any_part_of_it_differs(header: RequestHeader, change: Any) -> None:
    changed = change(header)
    assert due(header, changed, first_of_loop=False) == "change"
    assert header_digest(changed) != header_digest(header)


@pytest.mark.spec("HDR-02")
def test_an_equal_header_of_other_objects_is_not_written_again(header: RequestHeader) -> None:
    again = header_from_json(json.loads(json.dumps(header_to_json(header, schema_to_json))), schema_from_json)
    assert again.tools[0] is not header.tools[0]
    assert due(header, again, first_of_loop=False) is None
    assert header_digest(again) == header_digest(header)


@pytest.mark.spec("HDR-02")
def test_the_order_of_keys_and_the_kind_of_a_number_count(header: RequestHeader) -> None:
    def with_parameters(value: dict[str, Any]) -> RequestHeader:
        return attrs.evolve(header, tools=(ToolSchema("t", "", value),))

    assert due(with_parameters({"a": 1, "b": 2}), with_parameters({"b": 2, "a": 1}), first_of_loop=False) == "change"
    assert due(with_parameters({"a": 1}), with_parameters({"a": True}), first_of_loop=False) == "change"
    assert CallConfig(extra={"a": 1}) != CallConfig(extra={"a": True})  # type: ignore[arg-type]
    assert CallConfig(temperature=1).to_json() == CallConfig(temperature=1.0).to_json()


@pytest.mark.spec("HDR-03")
@pytest.mark.parametrize(
    ("has_one", "first_of_loop", "reason"),
    [(False, True, "initial"), (False, False, "initial"), (True, True, "resume"), (True, False, None)],
)
def test_why_a_header_is_due(
    header: RequestHeader, has_one: bool, first_of_loop: bool, reason: HeaderReason | None
) -> None:
    assert due(header if has_one else None, header, first_of_loop=first_of_loop) == reason


@pytest.mark.spec("HDR-04")
def test_any_prefix_folds_to_its_last_header(session: Session, store: FileStore, header: RequestHeader) -> None:
    headers = [header, *(change(header) for change in CHANGES)]
    for number, each in enumerate(headers):
        session.append(HeaderWritten(header=each, reason="change", provenance={"number": number}))
    lines = store.read("s1").lines
    from harness_core.session import read_lines

    for number, expected in enumerate(headers, 2):
        contents = read_lines(lines[:number], where="prefix")
        assert contents.events[-1].data.header == expected  # type: ignore[union-attr]
    assert session.header == headers[-1]


def test_a_tool_schema_is_stored_once_however_many_headers_use_it(session: Session, store: FileStore) -> None:
    tools = [ToolSchema(f"tool-{number}", "x" * 400, {"number": number}) for number in range(50)]
    config = CallConfig(model="m")
    session.append(HeaderWritten(header=RequestHeader(config=config, tools=tools), reason="initial"))  # type: ignore[arg-type]
    changed = [*tools[:20], ToolSchema("tool-20", "y" * 400, {}), *tools[21:]]
    session.append(HeaderWritten(header=RequestHeader(config=config, tools=changed), reason="change"))  # type: ignore[arg-type]
    session.append(HeaderWritten(header=RequestHeader(config=config, tools=tools), reason="change"))  # type: ignore[arg-type]
    first, second, third = map(len, store.read("s1").lines[1:])
    assert first > 50 * 400 > second * 5
    assert third < second
    assert [event.data.header.tools for event in read_log(store, "s1").events] == [
        tuple(tools),
        tuple(changed),
        tuple(tools),
    ]  # type: ignore[union-attr]


def test_schemas_are_still_known_after_a_resume(session: Session, store: FileStore, header: RequestHeader) -> None:
    session.append(HeaderWritten(header=header, reason="initial"))
    session.close()
    resumed = Session.resume("s1", store=store)
    resumed.append(HeaderWritten(header=header, reason="resume"))
    resumed.close()
    assert b"schemas" not in store.read("s1").lines[-1]
    assert read_log(store, "s1").events[-1].data.header == header  # type: ignore[union-attr]


@pytest.mark.spec("REQ-01")
def test_requests_are_frozen_and_each_extends_the_one_before(open_step: Session, header: RequestHeader) -> None:
    session = open_step
    session.append(HeaderWritten(header=header, reason="initial"))
    session.append(user("a"), APPEND)
    first = dispatch(session)
    session.append(user("b"), APPEND)
    second = dispatch(session, 2)
    assert [message.text for message in first.messages] == ["a"]
    assert list(second.messages)[:1] == list(first.messages)
    assert (first.session_id, first.header) == ("s1", header)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.messages = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        first.messages[0] = second.messages[1]  # type: ignore[index]


def test_there_is_no_request_without_a_header(open_step: Session) -> None:
    with pytest.raises(SessionError, match="no request header"):
        open_step.request()


@pytest.mark.spec("REQ-02")
def test_every_request_is_rebuilt_from_the_file_with_its_digest(
    open_step: Session, store: FileStore, header: RequestHeader
) -> None:
    session = open_step
    sent = []
    session.append(HeaderWritten(header=header, reason="initial"))
    for number in range(6):
        session.append(user(str(number)), APPEND)
        if number == 3:
            session.append(user("summary"), SurfaceReplace(start=3, end=7, sources=[3, 5, 7]))
        if number == 4:
            session.append(HeaderWritten(header=CHANGES[3](header), reason="change"))
        sent.append((dispatch(session, number + 1), session.request_digest()))
    session.close()
    read = read_log(store, "s1")
    rebuilt = list(rebuild_requests(read.info, read.events))
    assert [(each.request, each.digest) for each in rebuilt] == sent
    assert all(each.matches for each in rebuilt)
    assert len({digest for _, digest in sent}) == len(sent)
    assert verify(read.info, read.events).ok


@pytest.mark.spec("REQ-02")
def test_a_changed_byte_anywhere_in_a_request_breaks_its_digest(
    open_step: Session, store: FileStore, header: RequestHeader
) -> None:
    open_step.append(HeaderWritten(header=header, reason="initial"))
    open_step.append(user("a rather long message"), APPEND)
    dispatch(open_step)
    open_step.close()
    path = store.path("s1")
    whole = path.read_bytes()
    for old, new in [
        (b"rather", b"Rather"),
        (b"Be brief", b"Be brave"),
        (b'"temperature":1.0', b'"temperature":0.0'),
        (b'"id":"s1"', b'"id":"s2"'),
    ]:
        path.write_bytes(whole.replace(old, new))
        read = read_log(store, "s1")
        found = verify(read.info, read.events)
        assert (found.ok, found.requests, len(found.mismatches)) == (False, 1, 1), old
        assert found.mismatches[0].event.seq == 4


@pytest.mark.spec("REQ-02")
def test_the_check_of_a_live_request_names_the_part_that_differs(open_step: Session, header: RequestHeader) -> None:
    open_step.append(HeaderWritten(header=header, reason="initial"))
    open_step.append(user("a"), APPEND)
    request = open_step.request()
    check_request(open_step.info, open_step.events, request)
    wrong = {
        "header": attrs.evolve(request, header=CHANGES[0](header)),
        "messages": attrs.evolve(request, messages=()),
        "session_id": attrs.evolve(request, session_id="s2"),
    }
    for part, each in wrong.items():
        with pytest.raises(SessionError) as caught:
            check_request(open_step.info, open_step.events, each)
        assert caught.value.entry == part


def test_a_dispatch_without_a_header_is_an_error_that_names_it(open_step: Session) -> None:
    open_step.append(RequestDispatch(turn=1, step=1, attempt=1, digest="d"))
    with pytest.raises(SessionError, match="Event 2"):
        verify(open_step.info, open_step.events)


def _messages(*ids: str) -> tuple[UserMessage, ...]:
    return tuple(UserMessage(id=each, content=each) for each in ids)


@pytest.mark.spec("INBOX-02")
def test_replaying_splices_restores_both_lists_after_the_seed() -> None:
    splices = [
        InboxSpliced(target="next-turn", start=0, inserted=_messages("lost")),
        SessionSeeded(),
        InboxSpliced(target="next-turn", start=0, inserted=_messages("a", "b")),
        InboxSpliced(target="next-step", start=0, inserted=_messages("x")),
        InboxSpliced(target="next-turn", start=1, removed_count=1, inserted=_messages("c", "d"), outcome="canceled"),
        InboxSpliced(target="next-turn", start=0, removed_count=1, inserted=()),
    ]
    lists = replay_inbox(LogEvent(seq, 0, data) for seq, data in enumerate(splices))
    assert [message.id for message in lists.next_turn] == ["c", "d"]
    assert [message.id for message in lists.next_step] == ["x"]


@pytest.mark.spec("INBOX-02")
def test_a_splice_that_does_not_fit_is_an_error_with_its_number() -> None:
    events = [
        LogEvent(0, 0, InboxSpliced(target="next-step", start=0, inserted=_messages("a"))),
        LogEvent(1, 0, InboxSpliced(target="next-step", start=0, removed_count=2, inserted=())),
    ]
    with pytest.raises(LogOrderError, match="Event 1"):
        replay_inbox(events)
