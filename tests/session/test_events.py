"""What a log holds, and what it refuses before anything changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness_core._json import canonical
from harness_core.errors import JsonValueError
from harness_core.models import (
    AssistantMessage,
    CallConfig,
    FailureFacts,
    Finish,
    ReasoningBlock,
    ReasoningDelta,
    RequestHeader,
    Source,
    TextBlock,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallBlock,
    ToolCallStart,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UsageReport,
    UserMessage,
)
from harness_core.session import (
    APPEND,
    AssistantChunk,
    AssistantMessageLogged,
    Event,
    FileStore,
    HeaderWritten,
    InboxSpliced,
    LogOrderError,
    PluginRecord,
    RequestContext,
    RequestDispatch,
    RequestRetry,
    Session,
    SessionSeeded,
    StepEnd,
    StepStart,
    SurfaceReplace,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
    event_to_json,
    read_log,
)
from harness_core.session._quick import QUICK
from harness_core.session.events import EVENT_TYPES

PLACE = {"turn": 1, "step": 1}
USER = UserMessage(id="u", content=(TextBlock("één"), TextBlock("\u2028\x00\U0001f600")), source=Source("user"))
CONTEXT = UserMessage(
    id="c", content="now", source=Source("plugin", "snapshot", "core", {"sections": [{"name": "a", "text": "b"}]})
)  # type: ignore[arg-type]
ANSWER = AssistantMessage(
    content=(ReasoningBlock("hm", "sig"), TextBlock("yes"), ToolCallBlock("c1", "do", '{"broken'))
)
RESULT = ToolResultMessage(call_id="c1", name="do", content="no", is_error=True)
HEADER = RequestHeader(
    config=CallConfig(provider="p", model="m", temperature=0, max_tokens=7, stop=["x"], extra={"k": [1, None, True]}),  # type: ignore[arg-type]
    supplied={"model"},
    system="s",
    tools=[ToolSchema("do", "d", {"b": 1, "a": [0.5]}), ToolSchema("look")],
)
FAILURE = FailureFacts(code="RATE", message="slow down", status=429, retry_after=1.5, retryable=True)
CHUNKS = [
    TextDelta("t"), ReasoningDelta("r", "sig"), ToolCallStart(0, "c1", "do"), ToolArgumentsDelta(0, "{"),
    UsageReport(Usage(input_tokens=1, cached_tokens=0)), Finish("error", FAILURE), Finish("stop"),
]  # fmt: skip

STORY: list[tuple[Any, Any]] = [
    (InboxSpliced(target="next-turn", start=0, inserted=[USER]), None),
    (TurnStart(turn=1), None),
    (InboxSpliced(target="next-turn", start=0, removed_count=1, inserted=[]), None),
    (StepStart(**PLACE), None),
    (UserMessageLogged(message=USER), APPEND),
    (UserMessageLogged(message=CONTEXT), APPEND),
    (HeaderWritten(header=HEADER, reason="initial", provenance={"tools": [{"plugin": "x"}]}), None),
    (RequestContext(provider="p", model="m", context_window=10), None),
    (RequestDispatch(**PLACE, attempt=1, digest="d"), None),
    (RequestRetry(**PLACE, attempt=1, delay_ms=5, failure=FAILURE), None),
    *((AssistantChunk(**PLACE, chunk=chunk), None) for chunk in CHUNKS),
    (
        AssistantMessageLogged(
            **PLACE, message=ANSWER, usage=Usage(output_tokens=2), interrupted=True, chunks=[10, 11]
        ),
        APPEND,
    ),
    (ToolCallStarted(**PLACE, call_id="c1", name="do", arguments='{"broken'), None),
    (ToolResultLogged(**PLACE, message=RESULT, error="CODE", meta={"ms": 1.25}), APPEND),
    (PluginRecord("plugin/x/note", {"any": {"thing": [1, "two", None]}}), None),
    (UserMessageLogged(message=USER), SurfaceReplace(start=4, end=5, sources=[4, 5])),
    (StepEnd(**PLACE), None),
    (TurnEnd(turn=1, reason="error", cause=None, detail="why", failure=FAILURE), None),
    (TurnStart(turn=2), None),
    (TurnEnd(turn=2, reason="aborted", cause="user"), None),
    (SessionSeeded(origin="before"), None),
]


@pytest.mark.spec("LOG-01")
def test_every_event_type_comes_back_from_the_file_as_it_was(session: Session, store: FileStore) -> None:
    for data, surface in STORY:
        session.append(data, surface)
    assert {event.type for event in session.events} >= set(EVENT_TYPES)
    read = read_log(store, "s1")
    assert list(read.events) == list(session.events)
    assert [event_to_json(event) for event in read.events] == [event_to_json(event) for event in session.events]
    assert list(read.surface.messages) == list(session.messages)


@pytest.mark.spec("LOG-02")
def test_numbers_are_contiguous_over_all_types_and_every_event_has_its_time(session: Session) -> None:
    for data, surface in STORY:
        session.append(data, surface)
    assert [event.seq for event in session.events] == list(range(len(STORY)))
    times = [event.time_ms for event in session.events]
    assert times == sorted(times) and times[0] > session.created_at_ms


LONE = "\ud800"
REFUSED: list[tuple[Any, str]] = [
    (lambda: PluginRecord("plugin/x/y", {"a": [{"b": float("nan")}]}), "$.a[0].b"),
    (lambda: PluginRecord("plugin/x/y", {"a": {1: "x"}}), "$.a"),
    (lambda: PluginRecord("plugin/x/y", {"a": {LONE: 1}}), "$.a"),
    (lambda: PluginRecord("plugin/x/y", {"a": object()}), "$.a"),
    (lambda: PluginRecord("plugin/x/y", {"a": b"bytes"}), "$.a"),
    (lambda: PluginRecord("plugin/x/y", []), "$"),
    (lambda: PluginRecord("note", {}), "$.type"),
    (lambda: PluginRecord("turn/start", {"turn": 1}), "$.type"),
    (lambda: ToolResultLogged(**PLACE, message=RESULT, meta={"t": float("inf")}), "$.t"),
    (lambda: ToolResultLogged(**PLACE, message=ToolResultMessage(call_id="c", name="n", content=LONE)), "$.message.content[0].text"),
    (lambda: AssistantChunk(**PLACE, chunk=TextDelta(f"a{LONE}")), "$.chunk.text"),
    (lambda: AssistantChunk(**PLACE, chunk=Finish("error", FailureFacts(code="c", message="m", retry_after=float("nan")))), "$.chunk.failure.retry_after"),
    (lambda: ToolCallStarted(**PLACE, call_id="c", name="n", arguments=LONE), "$.arguments"),
    (lambda: HeaderWritten(header=RequestHeader(config=CallConfig(), system=LONE), reason="initial"), "$.header.system"),
    (lambda: TurnEnd(turn=True, reason="completed"), "$.turn"),
    (lambda: TurnEnd(turn=1.0, reason="completed"), "$.turn"),  # type: ignore[arg-type]
    (lambda: StepStart(turn=1, step=-1), "$.step"),
    (lambda: TurnEnd(turn=1, reason="done"), "$.reason"),  # type: ignore[arg-type]
    (lambda: TurnEnd(turn=1, reason="aborted", cause="me"), "$.cause"),  # type: ignore[arg-type]
    (lambda: HeaderWritten(header=HEADER, reason="new"), "$.reason"),  # type: ignore[arg-type]
    (lambda: InboxSpliced(target="inbox", start=0, inserted=()), "$.target"),  # type: ignore[arg-type]
    (lambda: AssistantChunk(**PLACE, chunk=Finish("over")), "$.reason"),  # type: ignore[arg-type]
    (lambda: ToolCallStarted(**PLACE, call_id=5, name="n", arguments=""), "$.call_id"),  # type: ignore[arg-type]
    (lambda: UserMessageLogged(message="hello"), "$.message"),  # type: ignore[arg-type]
    (lambda: UserMessageLogged(message=UserMessage(id="u", content=[7])), "$.content"),
    (lambda: UserMessageLogged(message=UserMessage(id="u", content=TextBlock("x").text, source=Source(data={"a": {2: 3}}))), "$.a"),  # type: ignore[arg-type]
    (lambda: AssistantChunk(**PLACE, chunk=TextDelta(None)), "$.text"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.spec("LOG-02")
@pytest.mark.parametrize(("make", "path"), REFUSED)
def test_what_is_not_lossless_json_is_refused_with_its_path_and_changes_nothing(
    session: Session, store: FileStore, make: Any, path: str
) -> None:
    session.append(TurnStart(turn=1))
    session.append(StepStart(**PLACE))
    before = store.path("s1").read_bytes()
    with pytest.raises(JsonValueError) as caught:
        data = make()
        session.append(data, APPEND if hasattr(data, "message") else None)
    assert caught.value.entry == path
    assert (len(session.events), len(session.messages)) == (2, 0)
    assert store.path("s1").read_bytes() == before


def test_values_nested_too_deeply_are_refused(session: Session) -> None:
    value: Any = "bottom"
    for _ in range(2_000):
        value = [value]
    with pytest.raises(JsonValueError, match="deeper"):
        session.append(PluginRecord("plugin/x/deep", {"v": value}))


@pytest.mark.parametrize(
    ("before", "data"),
    [
        ([], TurnStart(turn=2)),
        ([], TurnStart(turn=0)),
        ([], TurnEnd(turn=1, reason="completed")),
        ([], StepStart(turn=1, step=1)),
        ([TurnStart(turn=1)], TurnStart(turn=2)),
        ([TurnStart(turn=1)], TurnEnd(turn=2, reason="completed")),
        ([TurnStart(turn=1)], StepStart(turn=1, step=2)),
        ([TurnStart(turn=1)], StepStart(turn=2, step=1)),
        ([TurnStart(turn=1)], StepEnd(turn=1, step=1)),
        ([TurnStart(turn=1)], AssistantChunk(turn=1, step=1, chunk=TextDelta("x"))),
        ([TurnStart(turn=1)], SessionSeeded()),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], TurnEnd(turn=1, reason="completed")),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], StepStart(turn=1, step=2)),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], StepEnd(turn=1, step=2)),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], ToolCallStarted(turn=1, step=2, call_id="c", name="n", arguments="")),
        ([TurnStart(turn=1), StepStart(turn=1, step=1), StepEnd(turn=1, step=1)], RequestDispatch(turn=1, step=1, attempt=1, digest="")),
        ([TurnStart(turn=1), StepStart(turn=1, step=1), StepEnd(turn=1, step=1)], StepStart(turn=1, step=1)),
    ],
)  # fmt: skip
def test_an_event_out_of_its_place_is_refused_and_names_both_places(
    session: Session, before: list[Any], data: Any
) -> None:
    for event in before:
        session.append(event)
    with pytest.raises(LogOrderError) as caught:
        session.append(data)
    assert data.type in str(caught.value) and "stands" in str(caught.value)
    assert len(session.events) == len(before)


def test_the_line_of_an_event_is_plain_json(session: Session, store: FileStore) -> None:
    session.append(PluginRecord("plugin/x/y", {"b": 1, "a": "é"}))
    line = store.path("s1").read_text("utf-8").splitlines()[1]
    assert json.loads(line) == event_to_json(session.events[0])
    assert line == '{"seq":0,"time":1002,"type":"plugin/x/y","data":{"b":1,"a":"é"}}'
    assert session.events[0] == Event(0, 1002, PluginRecord("plugin/x/y", {"b": 1, "a": "é"}))


@pytest.mark.parametrize("number", range(len(STORY)))
def test_the_quick_way_to_write_an_event_is_the_general_way(number: int) -> None:
    data, surface = STORY[number]
    if type(data) in QUICK:
        assert QUICK[type(data)](data) == canonical(event_to_json(Event(0, 0, data, surface))["data"])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quick_text_is_written_as_json_writes_it(text: str) -> None:
    data = ToolCallStarted(**PLACE, call_id=text, name=text, arguments=text)
    assert QUICK[ToolCallStarted](data) == canonical(event_to_json(Event(0, 0, data))["data"])
