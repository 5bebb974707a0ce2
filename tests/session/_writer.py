"""Run as a program: writes numbered events to a session until it is killed, and says on stdout which are acknowledged."""

from __future__ import annotations

import sys

from harness_core.models import AssistantMessage, ToolCallBlock, ToolResultMessage, UserMessage
from harness_core.session import (
    APPEND,
    AssistantMessageLogged,
    FileStore,
    Session,
    SessionNotFoundError,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
)


def main(folder: str) -> None:
    store = FileStore(folder)
    try:
        session = Session.resume("s1", store=store)
    except SessionNotFoundError:
        session = Session.create("s1", cwd="/", store=store)
    session.observe(lambda event: print(event.seq, flush=True))
    print("open", len(session.events), flush=True)
    turn = session.nesting.last_turn
    while True:
        turn += 1
        session.append(TurnStart(turn=turn))
        session.append(StepStart(turn=turn, step=1))
        session.append(UserMessageLogged(message=UserMessage(id=f"u{turn}", content="x" * (turn * 997 % 9000))), APPEND)
        calls = tuple(ToolCallBlock(f"{turn}-{n}", "do", "{}") for n in range(3))
        session.append(AssistantMessageLogged(turn=turn, step=1, message=AssistantMessage(content=calls)), APPEND)
        for call in calls:
            session.append(ToolCallStarted(turn=turn, step=1, call_id=call.id, name="do", arguments="{}"))
            result = ToolResultMessage(call_id=call.id, name="do", content="y" * 500)
            session.append(ToolResultLogged(turn=turn, step=1, message=result), APPEND)
        session.append(StepEnd(turn=turn, step=1))
        session.append(TurnEnd(turn=turn, reason="completed"))


if __name__ == "__main__":
    main(sys.argv[1])
