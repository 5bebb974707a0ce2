"""Permissions as facts: what a host says of them, kept in the log of each session. Enforces nothing."""

from __future__ import annotations

import weakref
from typing import Any, get_args

from harness_core import HarnessError, Source, UserMessage
from harness_core.agent import Agent
from harness_core.session import IdSource, PluginRecord, Session
from harness_facts._texts import approvals_notice
from harness_facts.config import Approvals, Config, FileAccess

__all__ = ["APPROVALS", "FILES", "PLUGIN", "Permissions"]

PLUGIN = "facts"
"""The plugin's name, and the plugin in the source of its notices."""
FILES = "plugin/facts/files"
APPROVALS = "plugin/facts/approvals"
"""The types of the records in the log."""


class _Known:
    """What one session's log says, each event looked at once."""

    def __init__(self, session: Session) -> None:
        self._session = weakref.ref(session)
        self._read = 0
        self.files: tuple[FileAccess, str | None] | None = None
        self.approvals: Approvals | None = None

    def catch_up(self) -> _Known:
        session = self._session()
        if session is not None and self._read < len(session.events):
            events = session.events
            for event in events[self._read :]:
                if type(event.data) is PluginRecord:
                    self._take(event.data)
            self._read = len(events)
        return self

    def _take(self, record: PluginRecord) -> None:
        """A record that says something else, from a later version perhaps, says nothing."""
        value: Any = record.data.get("value")
        root = record.data.get("root")
        if record.type == FILES and value in get_args(FileAccess) and (root is None or isinstance(root, str)):
            self.files = (value, root)
        elif record.type == APPROVALS and value in get_args(Approvals):
            self.approvals = value


class Permissions:
    """What holds for an agent's files and for asking. Found with ``ctx.services.get(Permissions)``.

    A host that enforces permissions says here what it enforces, so that the model knows it as well.
    """

    def __init__(self, config: Config, new_id: IdSource) -> None:
        self._config = config
        self._new_id = new_id
        self._sessions: weakref.WeakKeyDictionary[Session, _Known] = weakref.WeakKeyDictionary()

    def files(self, session: Session) -> tuple[FileAccess, str] | None:
        """What holds for files, and the folder that can be written; None where it is not known."""
        access, root = self._known(session).files or (self._config.file_access, self._config.writable_root)
        return None if access is None else (access, root or session.cwd)

    def approvals(self, session: Session) -> Approvals | None:
        """Is the user asked? None where it is not known."""
        return self._known(session).approvals or self._config.approvals

    def set_files(self, agent: Agent, access: FileAccess, writable_root: str | None = None) -> None:
        """Say what holds for files from here on; it is told with the next step.

        Raises:
            HarnessError: there is no such access.
        """
        _check(access, get_args(FileAccess), "file access")
        if (access, writable_root or agent.session.cwd) != self.files(agent.session):
            data = {"value": access} if writable_root is None else {"value": access, "root": writable_root}
            agent.session.append(PluginRecord(FILES, data))

    def set_approvals(self, agent: Agent, approvals: Approvals) -> None:
        """Say whether the user is asked from here on; a switch is also announced to the model.

        Raises:
            HarnessError: the value is neither.
        """
        _check(approvals, get_args(Approvals), "value for approvals")
        before = self.approvals(agent.session)
        if approvals == before:
            return
        agent.session.append(PluginRecord(APPROVALS, {"value": approvals}))
        if before is not None:
            text = approvals_notice(approvals)
            source = Source("plugin", "notice", PLUGIN, {"summary": f"approvals: {approvals}"})
            agent.inject(UserMessage(id=self._new_id(), content=text, source=source))

    def _known(self, session: Session) -> _Known:
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = _Known(session)
        return found.catch_up()


def _check(value: object, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise HarnessError(
            f"{value!r} is no {what}.",
            remedy=f"Use one of {', '.join(map(repr, known))}.",
            plugin=PLUGIN,
            entry=str(value),
            known=known,
        )
