"""The service: sessions to refer to, and what a message says of those that it refers to. Writes nothing."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import anyio
import attrs

from harness_core import Source, TextBlock, UserMessage
from harness_core.agent import Agent
from harness_core.session import IdSource, LogContents, Session, SessionStore, list_sessions, random_id, read_log
from harness_session_reference._texts import recall
from harness_session_reference.budget import Fitted, fitted
from harness_session_reference.candidates import Candidate, ranked
from harness_session_reference.config import Config
from harness_session_reference.errors import PLUGIN, ReferenceProblem, SessionReferenceError
from harness_session_reference.references import Reference, normalised
from harness_session_reference.snapshot import snapshot

__all__ = ["Prepared", "SessionReferences"]

T = TypeVar("T")
_VERSION = 1
"""Of the data in a recall's source."""


@attrs.frozen(kw_only=True)
class Prepared:
    """What to put into an inbox: the content, detached from what was given, and the recall that goes with it, if any."""

    content: tuple[TextBlock, ...]
    recall: UserMessage | None = None


class SessionReferences:
    """Follows references to other sessions of one store. Found with ``ctx.services.get(SessionReferences)``.

    Raises:
        SessionReferenceError: a setting cannot be used.
    """

    def __init__(self, store: SessionStore, config: Config | None = None, *, new_id: IdSource = random_id) -> None:
        self._store = store
        self._config = config if config is not None else Config()
        self._new_id = new_id

    async def prepare(
        self,
        target: Agent | Session | None,
        content: str | Iterable[TextBlock],
        references: Iterable[object] = (),
        signal: anyio.Event | None = None,
    ) -> Prepared:
        """The content, and one recall message that holds a copy of every session that it refers to. All or nothing.

        Args:
            target: who refers; it may not mean itself.
            references: `Reference` records, or mappings with ``id`` and perhaps ``label``.
            signal: give up as soon as it is set. Cancelling the task does so as well.

        Raises:
            SessionReferenceError: ``problem`` says why nothing came of it.
        """
        detached = (TextBlock(content),) if isinstance(content, str) else tuple(copy.deepcopy(list(content)))
        wanted = normalised(references, target.id if target is not None else None, self._config.max_references)
        if not wanted:
            return Prepared(content=detached)
        contents = await _unless(signal, lambda: self._read_all(wanted))
        sources = [
            fitted(snapshot(each, reference.shown), self._config.max_reference_bytes)
            for each, reference in zip(contents, wanted, strict=True)
        ]
        return Prepared(content=detached, recall=self._recall(sources))

    async def _read_all(self, references: Sequence[Reference]) -> list[LogContents]:
        """Read all sessions at the same time, each once; the first failure in the list is the one that counts."""
        outcomes: list[LogContents | Exception] = [KeyError()] * len(references)

        async def read(index: int, session_id: str) -> None:
            try:
                # A read that hangs is left to itself: nothing waits for a disk that is gone.
                outcomes[index] = await anyio.to_thread.run_sync(
                    read_log, self._store, session_id, abandon_on_cancel=True
                )
            except Exception as error:  # raised below, in the order of the list
                outcomes[index] = error

        async with anyio.create_task_group() as tasks:
            for index, reference in enumerate(references):
                tasks.start_soon(read, index, reference.id)
        return [_read(reference, outcome) for reference, outcome in zip(references, outcomes, strict=True)]

    def _recall(self, sources: Sequence[Fitted]) -> UserMessage:
        known = ("session_id", "label", "captured_through_seq")
        references = [
            {**{name: each.data[name] for name in known}, **each.stats, "input_index": index}
            for index, each in enumerate(sources)
        ]
        source = Source(PLUGIN, "recall", None, {"version": _VERSION, "references": references})
        return UserMessage(id=self._new_id(), content=recall([each.data for each in sources]), source=source)

    async def candidates(
        self,
        target: Agent | Session | None,
        query: str = "",
        limit: int | None = None,
        signal: anyio.Event | None = None,
    ) -> list[Candidate]:
        """Sessions to refer to, the most likely first; ``query`` is looked for in ids, directories and titles.

        Raises:
            SessionReferenceError: the limit is no positive whole number, or the signal was set.
        """
        limit = self._config.candidate_limit if limit is None else limit
        if type(limit) is not int or limit < 1:
            raise SessionReferenceError(
                ReferenceProblem.INVALID_REFERENCE,
                f"The limit of a list of candidates must be a positive whole number, not {limit!r}.",
            )
        session = target.session if isinstance(target, Agent) else target
        summaries = await _unless(
            signal, lambda: anyio.to_thread.run_sync(list_sessions, self._store, abandon_on_cancel=True)
        )
        return ranked(
            summaries,
            session.id if session is not None else None,
            session.cwd if session is not None else None,
            query,
            limit,
        )


def _read(reference: Reference, outcome: LogContents | Exception) -> LogContents:
    if isinstance(outcome, LogContents):
        return outcome
    problem = getattr(outcome, "message", None) or str(outcome) or type(outcome).__name__
    raise SessionReferenceError(
        ReferenceProblem.READ_FAILED, f"The session {reference.id!r} cannot be read: {problem}", entry=reference.id
    ) from outcome


async def _unless(signal: anyio.Event | None, work: Callable[[], Awaitable[T]]) -> T:
    """The outcome of the work, given up as soon as the signal is set, which also counts before whatever it raised.

    Raises:
        SessionReferenceError: the signal was set.
    """
    if signal is None:
        return await work()
    outcome: list[T] = []
    failure: Exception | None = None
    if not signal.is_set():
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await signal.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                outcome.append(await work())
            except Exception as error:  # raised below, unless the signal was set meanwhile
                failure = error
            tasks.cancel_scope.cancel()
    if signal.is_set():
        raise SessionReferenceError(ReferenceProblem.CANCELLED, "Following references was cancelled.")
    if failure is not None:
        raise failure
    return outcome[0]
