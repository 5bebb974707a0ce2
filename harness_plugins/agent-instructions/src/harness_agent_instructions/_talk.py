"""One conversation as this plugin follows it: what is in force, what tools touched, and which messages are on their way.

Everything here can be lost: the log and the inbox hold what must not be. Reads no files.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence

import anyio

from harness_agent_instructions._reading import Content
from harness_agent_instructions._state import Ledger, View, changes_in, is_ours, payload
from harness_core import UserMessage
from harness_core.agent import Agent, Inbox
from harness_core.session import MessageTrail, Session

__all__ = ["Talk", "ours", "put_back", "put_in", "shown_in"]


class Talk:
    """What is remembered of one session (of none, where there is none). Keeps neither it nor its agent alive."""

    def __init__(self, session: Session | None) -> None:
        self.trail = MessageTrail(session, is_ours) if session is not None else None
        self.memory: dict[str, Content] = {}
        """What files said, by path, without their text."""
        self.lock = anyio.Lock()
        """Compositions of one conversation run one after another."""
        self.agent: weakref.ref[Agent] | None = None
        self.unconfirmed: dict[str, tuple[str, ...]] = {}
        """Directories by the call that touched them, until its final result is known."""
        self.touched: set[str] = set()
        """Paths of directories that have still to be looked at."""
        self.lost: set[str] = set()
        """Such directories as they are shown, from messages that were lost on their way."""
        self._held_back: list[str] = []
        self._on_their_way: dict[str, UserMessage] = {}
        self._ledger = Ledger(self.trail) if self.trail is not None else None

    def view(self, claimed: Sequence[UserMessage] = ()) -> View:
        """What is in force by what the model sees and by what was claimed."""
        view = self._ledger.view() if self._ledger is not None else View()
        return view.with_messages(ours(claimed))

    def says(self, message: UserMessage, claimed: Sequence[UserMessage]) -> bool:
        """Would a message of ours change nothing of what is in force? (An equal one that was revoked since is no reason.)"""
        view = self.view(claimed)
        return view.agrees(view.with_messages([message]))

    # --- touched directories ------------------------------------------------------------------------------------------

    def hold_back(self, directories: Iterable[str]) -> None:
        """Directories that count from the end of the open step on."""
        self._held_back += directories

    def release(self) -> None:
        """The step is over: what was touched in it counts now."""
        self.touched.update(self._held_back)
        self._held_back.clear()
        self.unconfirmed.clear()

    @property
    def due(self) -> bool:
        """Is there a directory that has still to be looked at?"""
        return bool(self.touched or self.lost)

    def done(self, looked_at: Collection[str], waiting: Collection[str], message: UserMessage | None) -> None:
        """A composition looked at these directories; some wait for room, and ``message`` tells of the others."""
        self.touched = (self.touched - set(looked_at)) | set(waiting)
        self.lost.clear()
        if message is not None:
            self._on_their_way[message.id] = message

    # --- messages on their way ----------------------------------------------------------------------------------------

    def find_lost(self, around: Collection[UserMessage]) -> None:
        """Take up again what a message was to tell of that is neither logged nor among those ``around``."""
        here = {message.id for message in around}
        for message in list(self._on_their_way.values()):
            if self.trail is not None and self.trail.was_logged(message.id):
                del self._on_their_way[message.id]
            elif message.id not in here:
                self.take_up(message)

    def take_up(self, message: UserMessage) -> None:
        """A message is to be composed anew."""
        self._on_their_way.pop(message.id, None)
        self.lost |= shown_in(message)


def ours(messages: Iterable[UserMessage]) -> list[UserMessage]:
    """This plugin's messages among others."""
    return [message for message in messages if is_ours(message.source)]


def shown_in(message: UserMessage) -> set[str]:
    """The directories that a message tells of, as they are shown."""
    directories = {change.key.directory for change in changes_in(message.source)}
    return {directory for directory in directories if directory is not None}


def put_in(inbox: Inbox, message: UserMessage | None) -> None:
    """Let ``message`` be the one of ours that waits, at the head of the next step; for None, let none wait (1.5).

    One that says the same stays where it is, with its id.
    """
    waiting = ours(inbox.next_step)
    if message is None:
        kept = None
    else:
        kept = next((each for each in waiting if payload(each) == payload(message)), None)
        if kept is None:
            inbox.add("next-step", message, first=True)
    for each in waiting:
        if each is not kept:
            inbox.remove(each.id)


def put_back(inbox: Inbox, messages: Iterable[UserMessage]) -> None:
    """Let messages that were claimed wait again, at the head of the next step and in their order."""
    said = [payload(each) for each in ours(inbox.next_step)]
    for message in reversed(list(messages)):
        if payload(message) not in said:
            inbox.add("next-step", message, first=True)
