"""Sessions with a clock that counts, for tests that look at every event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from harness_core.models import (
    AssistantMessage,
    CallConfig,
    RequestHeader,
    TextBlock,
    ToolCallBlock,
    ToolSchema,
    UserMessage,
)
from harness_core.session import (
    APPEND,
    AssistantMessageLogged,
    FileStore,
    HeaderWritten,
    RequestDispatch,
    Session,
    StepStart,
    TurnStart,
    UserMessageLogged,
)


@pytest.fixture
def clock() -> Callable[[], int]:
    """Time that moves on by one at every look."""
    return count(1_000).__next__


@pytest.fixture
def store(tmp_path: Path, clock: Callable[[], int]) -> FileStore:
    return FileStore(tmp_path / "sessions", clock=clock)


@pytest.fixture
def session(store: FileStore, clock: Callable[[], int]) -> Iterator[Session]:
    session = Session.create("s1", cwd="/work", store=store, clock=clock)
    yield session
    session.close()


@pytest.fixture
def header() -> RequestHeader:
    tools = (ToolSchema("look", "Look at something.", {"type": "object"}), ToolSchema("do", "Do something.", {}))
    return RequestHeader(config=CallConfig(provider="p", model="m", temperature=1), system="Be brief.", tools=tools)


@pytest.fixture
def tool_step(header: RequestHeader) -> Callable[[Session], None]:
    """Opens turn 1, step 1 with a request whose answer asks for the calls c1 and c2."""

    def run(session: Session) -> None:
        session.append(TurnStart(turn=1))
        session.append(StepStart(turn=1, step=1))
        session.append(UserMessageLogged(message=UserMessage(id="u1", content="Please look and do.")), APPEND)
        session.append(HeaderWritten(header=header, reason="initial"))
        session.append(RequestDispatch(turn=1, step=1, attempt=1, digest=session.request_digest()))
        answer = AssistantMessage(
            content=(TextBlock("Yes."), ToolCallBlock("c1", "look", "{}"), ToolCallBlock("c2", "do", '{"x": 1}'))
        )
        session.append(AssistantMessageLogged(turn=1, step=1, message=answer), APPEND)

    return run
