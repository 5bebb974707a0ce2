"""One directory's instruction files: looking at them, and what has to be said about them now. Knows no budget."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness_agent_instructions._places import Directory
from harness_agent_instructions._reading import UNAVAILABLE, Content, Found, Reader
from harness_agent_instructions._state import Action, Change, FileKey, View

__all__ = ["File", "Group", "look", "transitions"]


@attrs.frozen(kw_only=True)
class File:
    """A file that counts, as of this pass. ``content`` is None for one in force that cannot be read now: it stays."""

    key: FileKey
    path: str
    """As it is shown."""
    place: str
    """Where it is."""
    found: Found | None = None
    content: Content | None = None


@attrs.frozen(kw_only=True)
class Group:
    """What a directory holds: the files that count, in order, and those of which nothing can be told now."""

    directory: Directory
    files: tuple[File, ...]
    unknown: frozenset[FileKey]


async def look(reader: Reader, directory: Directory, label: Callable[[str], str], view: View, *, fresh: bool) -> Group:
    """Look at a directory's candidates, each once; ``fresh`` reads them anew, whatever is remembered.

    Where something in force cannot be looked at, the whole directory stays as it is.
    """
    found: list[File] = []
    unknown: set[FileKey] = set()
    for name in directory.names:
        file = File(key=FileKey(directory.shown, name), path=label(name), place=directory.file(name))
        probe = await reader.probe(file.place)
        if isinstance(probe, Found):
            found.append(attrs.evolve(file, found=probe))
        elif probe is UNAVAILABLE:
            if view.active(file.key) is not None:
                return _as_it_is(directory, label, view)
            unknown.add(file.key)
    files: list[File] = []
    trimmed: set[str] = set()
    unread: set[str] = set()
    for file in found:
        assert file.found is not None
        content = await reader.content(file.place, file.found, fresh=fresh)
        active = view.active(file.key)
        if content is None:
            unknown.add(file.key)
            if active is not None:
                # Its text is out of reach; by the digest at least an exact copy of it can be told.
                unread.add(str(active.digest))
                files.append(file)
        elif content.trimmed not in trimmed and content.digest not in unread:
            trimmed.add(content.trimmed)
            files.append(attrs.evolve(file, content=content))
    return Group(directory=directory, files=tuple(files), unknown=frozenset(unknown))


def _as_it_is(directory: Directory, label: Callable[[str], str], view: View) -> Group:
    keys = [FileKey(directory.shown, name) for name in (*directory.names, *_former(directory, view))]
    files = [File(key=key, path=label(key.name), place=directory.file(key.name)) for key in keys if view.active(key)]
    return Group(directory=directory, files=tuple(files), unknown=frozenset(keys))


def _former(directory: Directory, view: View) -> list[str]:
    """Names that are in force in a directory and no candidates any more: they count as absent."""
    names = [change.key.name for change in view.within(directory.shown)]
    return [name for name in names if name not in directory.names]


def transitions(group: Group, view: View, admitted: Callable[[FileKey], bool]) -> list[tuple[Change, File | None]]:
    """What has to be said about a directory, with the file that says it; ``admitted`` are the files that may count."""
    changes: list[tuple[Change, File | None]] = []
    files = {file.key: file for file in group.files if admitted(file.key)}
    for name in (*group.directory.names, *_former(group.directory, view)):
        key = FileKey(group.directory.shown, name)
        file, active = files.get(key), view.active(key)
        if file is not None:
            digest = file.content.digest if file.content is not None else None
            if digest is not None and (active is None or active.digest != digest):
                action: Action = "set" if active is None else "replace"
                changes.append((Change(action=action, key=key, path=file.path, digest=digest), file))
        elif active is not None and key not in group.unknown:
            changes.append((Change(action="remove", key=key, path=active.path), None))
    return changes
