"""One directory's instruction files: looking at them, and what has to be said about them now. Knows no budget."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness_agent_instructions._places import Candidate, Directory
from harness_agent_instructions._reading import UNAVAILABLE, Content, Found, Reader
from harness_agent_instructions._state import Action, Change, FileKey, View

__all__ = ["File", "Group", "look", "transitions"]


@attrs.frozen
class File:
    """A file that counts, as of this pass. ``content`` is None for one in force that cannot be read now: it stays."""

    candidate: Candidate
    found: Found | None
    content: Content | None

    @property
    def key(self) -> FileKey:
        return self.candidate.key

    @property
    def path(self) -> str:
        """As it is shown."""
        return self.candidate.path

    @property
    def place(self) -> str:
        """Where it is."""
        return self.candidate.place


@attrs.frozen(kw_only=True)
class Group:
    """What a directory holds: the files that count, in order, and those of which nothing can be told now."""

    directory: Directory
    files: tuple[File, ...]
    unknown: frozenset[FileKey]


async def look(reader: Reader, directory: Directory, view: View, *, fresh: bool) -> Group:
    """Look at a directory's candidates, each once.

    Where something in force cannot be looked at, the whole directory stays as it is. ``fresh`` is for a full list, which
    has no state to keep: what can be read is read anew, whatever is remembered, and the rest is left out.
    """
    found: list[tuple[Candidate, Found]] = []
    unknown: set[FileKey] = set()
    for candidate in directory.candidates:
        probe = await reader.probe(candidate.place)
        if isinstance(probe, Found):
            found.append((candidate, probe))
        elif probe is UNAVAILABLE:
            if not fresh and view.active(candidate.key) is not None:
                return _as_it_is(directory, view)
            unknown.add(candidate.key)
    files: list[File] = []
    trimmed: set[str] = set()
    unread: set[str] = set()
    for candidate, probe in found:
        content = await reader.content(candidate.place, probe, fresh=fresh)
        if content is None:
            unknown.add(candidate.key)
            active = view.active(candidate.key)
            if active is not None:
                # Its text is out of reach; by the digest at least an exact copy of it can be told.
                unread.add(str(active.digest))
                files.append(File(candidate, probe, None))
        elif content.trimmed not in trimmed and content.digest not in unread:
            trimmed.add(content.trimmed)
            files.append(File(candidate, probe, content))
    return Group(directory=directory, files=tuple(files), unknown=frozenset(unknown))


def _as_it_is(directory: Directory, view: View) -> Group:
    files = [File(candidate, None, None) for candidate in directory.candidates if view.active(candidate.key)]
    keys = [candidate.key for candidate in directory.candidates]
    return Group(directory=directory, files=tuple(files), unknown=frozenset([*keys, *_former(directory, view)]))


def _former(directory: Directory, view: View) -> list[FileKey]:
    """What is in force in a directory and no candidate any more: it counts as absent."""
    former = (directory.former(change.key.name) for change in view.within(directory.shown))
    return [key for key in former if key is not None]


def transitions(group: Group, view: View, admitted: Callable[[FileKey], bool]) -> list[tuple[Change, File | None]]:
    """What has to be said about a directory, with the file that says it; ``admitted`` are the files that may count."""
    changes: list[tuple[Change, File | None]] = []
    files = {file.key: file for file in group.files if admitted(file.key)}
    candidates = (candidate.key for candidate in group.directory.candidates)
    for key in (*candidates, *_former(group.directory, view)):
        file, active = files.get(key), view.active(key)
        if file is not None:
            digest = file.content.digest if file.content is not None else None
            if digest is not None and (active is None or active.digest != digest):
                action: Action = "set" if active is None else "replace"
                changes.append((Change(action=action, key=key, path=file.path, digest=digest), file))
        elif active is not None and key not in group.unknown:
            changes.append((Change(action="remove", key=key, path=active.path), None))
    return changes
