"""What a conversation says is in force: changes in the sources of messages, folded in order. Never reads their text.

The source of a message is machine state and the only memory there is (PRE-09): a restart, a compaction or a message that
never entered is nothing special, since all of it is read back from what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from harness_core import Source, UserMessage
from harness_core.session import MessageTrail

__all__ = ["KIND", "Action", "Change", "FileKey", "Ledger", "View", "is_ours", "payload", "source_of"]

KIND = "agent-instructions"
FORM = "instructions"

Action: TypeAlias = Literal["set", "replace", "remove"]


@attrs.frozen(cache_hash=True)
class FileKey:
    """One instruction file: its directory as it is shown (None for the user's folder), and its name."""

    directory: str | None
    name: str


@attrs.frozen(kw_only=True)
class Change:
    """One change of what is in force; ``digest`` is that of the file's full text."""

    action: Action
    key: FileKey
    path: str
    digest: str | None = None

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "action": self.action,
            "scope": [self.key.directory, self.key.name],
            "path": self.path,
        }
        if self.digest is not None:
            data["digest"] = self.digest
        return data


def _change(data: object) -> Change | None:
    """The change that was written like this; None where it is malformed."""
    match data:
        case {
            "action": "set" | "replace" as action,
            "scope": [directory, str(name)],
            "path": str(path),
            "digest": str(digest),
        }:
            return _placed(action, directory, name, path, digest)
        case {"action": "remove", "scope": [directory, str(name)], "path": str(path)}:
            return _placed("remove", directory, name, path, None)
        case _:
            return None


def _placed(action: Action, directory: object, name: str, path: str, digest: str | None) -> Change | None:
    if directory is not None and not (isinstance(directory, str) and _is_inside(directory)):
        return None
    if "/" in name or "\\" in name or name in ("", ".", ".."):
        return None
    return Change(action=action, key=FileKey(directory, name), path=path, digest=digest)


def _is_inside(directory: str) -> bool:
    """A source can come from anywhere: what would lead out of the project is no directory of ours."""
    return bool(directory) and "\0" not in directory and not {"", ".."} & set(directory.split("/"))


def is_ours(source: Source) -> bool:
    """Is it the source of one of this plugin's messages?"""
    return source.kind == KIND and isinstance(source.data.get("changes"), list)


def payload(message: UserMessage) -> tuple[object, ...]:
    """What two messages must share to say the same."""
    return (message.content, message.source)


def source_of(changes: Sequence[Change], identity: str | None) -> Source:
    """The source of a message with these changes; with an identity it is a full list."""
    data: dict[str, Any] = {} if identity is None else {"baseline": True, "baseline_identity": identity}
    data["changes"] = [change.to_json() for change in changes]
    return Source(KIND, FORM, None, data)


def changes_in(source: Source) -> list[Change]:
    """The well-formed changes of one of our sources."""
    return [change for each in source.data["changes"] if (change := _change(each)) is not None]


def identity_in(source: Source) -> str | None:
    """The identity of a full list; None where the message is none."""
    identity = source.data.get("baseline_identity")
    return identity if source.data.get("baseline") is True and isinstance(identity, str) else None


@attrs.define
class View:
    """What is in force by some sequence of messages."""

    identity: str | None = None
    """The identity of the newest full list; None where there is none."""
    _last: dict[str | None, dict[str, Change]] = attrs.field(factory=dict[str | None, dict[str, Change]])
    """The last change of each file, by directory and name."""

    def take(self, messages: Iterable[UserMessage]) -> None:
        for message in messages:
            identity = identity_in(message.source)
            if identity is not None:
                self.identity = identity
            # A full list begins with what it makes void: that leaves nothing to follow, where a deleted file may come back.
            voiding = identity is not None
            for change in changes_in(message.source):
                voiding = voiding and change.action == "remove"
                names = self._last.setdefault(change.key.directory, {})
                if voiding:
                    names.pop(change.key.name, None)
                else:
                    names[change.key.name] = change

    def active(self, key: FileKey) -> Change | None:
        """The change by which a file is in force; None where it is not."""
        change = self._last.get(key.directory, {}).get(key.name)
        return change if change is not None and change.action != "remove" else None

    def within(self, directory: str | None) -> list[Change]:
        """The changes by which files of a directory are in force."""
        return [change for change in self._last.get(directory, {}).values() if change.action != "remove"]

    @property
    def directories(self) -> list[str | None]:
        """The directories with a file that is in force, or was until it was deleted."""
        return [directory for directory, names in self._last.items() if names]

    @property
    def in_force(self) -> list[Change]:
        """The changes by which files are in force."""
        return [change for directory in self._last for change in self.within(directory)]

    def agrees(self, other: View) -> bool:
        """Is the same in force by both, however it came to be?"""
        mine, theirs = ({change.key: change.digest for change in view.in_force} for view in (self, other))
        return self.identity == other.identity and mine == theirs

    def with_messages(self, messages: Sequence[UserMessage]) -> View:
        """As it would be after these messages too."""
        if not messages:
            return self
        view = View(self.identity, {directory: dict(changes) for directory, changes in self._last.items()})
        view.take(messages)
        return view


class Ledger:
    """The view of what one session still shows, kept up with it."""

    def __init__(self, trail: MessageTrail) -> None:
        self.trail = trail
        self._view = View()
        self._taken = 0
        self._generation = 0

    def view(self) -> View:
        """What is in force now; not to be changed."""
        visible, generation = self.trail.visible, self.trail.generation
        if generation != self._generation:
            self._view, self._taken, self._generation = View(), 0, generation
        if self._taken < len(visible):
            self._view.take(visible[self._taken :])
            self._taken = len(visible)
        return self._view
