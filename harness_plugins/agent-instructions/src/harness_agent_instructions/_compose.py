"""Composing the message that is due: a full list where the conversation shows none, and what has changed otherwise.

Compares what the files say now with what the conversation says of them, and nothing else: whatever the reason for a
difference (an edit, a restart, a compaction, a message that never entered), the same code closes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import attrs

from harness_agent_instructions import _texts as texts
from harness_agent_instructions._groups import File, Group, look, transitions
from harness_agent_instructions._places import Directory, Project
from harness_agent_instructions._reading import Content, Reader
from harness_agent_instructions._render import Block, Level, Part, select, write
from harness_agent_instructions._state import Change, FileKey, View, source_of
from harness_core import Source, TextBlock, UserMessage

__all__ = ["Draft", "Due", "compose"]

_SPARE = len(texts.REPLACES) + 1
"""Kept free in a list without the remark, so that whether it has one does not decide which files fit."""

_Told: TypeAlias = tuple[str, tuple[Change, ...]]
"""A block's text, and the changes that it really tells of."""


@attrs.frozen(kw_only=True)
class Draft:
    """A message that is due."""

    content: tuple[TextBlock, ...]
    source: Source

    def message(self, message_id: str) -> UserMessage:
        return UserMessage(id=message_id, content=self.content, source=self.source)


@attrs.frozen(kw_only=True)
class Due:
    """What came of a composition; ``waiting`` are touched directories that there was no room for at all."""

    draft: Draft | None = None
    waiting: frozenset[str] = frozenset()


async def compose(
    project: Project,
    reader: Reader,
    view: View,
    touched: Collection[str] = (),
    failed: Callable[[str, Exception], None] | None = None,
) -> Due:
    """What is due now. ``view`` is what the conversation says, ``touched`` are paths of directories tools worked in.

    ``failed`` is told of a touched directory that could not be looked at; without it, as for all others, that raises.
    """
    identity = project.identity
    complete: _Told | None = None
    changes: list[tuple[Change, File | None]] = []
    if view.identity == identity:
        base = await _look(project.base, reader, view)
        admitted = _fitting(base, project, reader, view)
        for group in base:
            changes += transitions(group, view, admitted.__contains__)
    else:
        complete, revoked, view = await _complete(project, reader, view)
        changes += revoked
    nested = project.nested(touched, _nested_in(project, view))
    if nested:
        await _look_ahead(reader, nested)
    for directory in nested:
        try:
            group = await look(reader, directory, view, fresh=False)
        except Exception as error:
            if failed is None or directory.path not in touched:
                raise
            failed(directory.shown or directory.path, error)
            continue
        changes += transitions(group, view, lambda key: True)
    delta = await _delta(changes, project, reader)
    waiting = frozenset() if delta is not None else _paths(project, changes).intersection(touched)
    if complete is None and delta is None:
        return Due(waiting=waiting)
    blocks = [each for each in (complete, delta) if each is not None]
    draft = Draft(
        content=tuple(TextBlock(text) for text, _ in blocks),
        source=source_of([change for _, told in blocks for change in told], identity if complete is not None else None),
    )
    return Due(draft=draft, waiting=waiting)


async def _look_ahead(reader: Reader, directories: Sequence[Directory]) -> None:
    await reader.look_ahead([candidate.place for directory in directories for candidate in directory.candidates])


async def _look(directories: Sequence[Directory], reader: Reader, view: View, *, fresh: bool = False) -> list[Group]:
    await _look_ahead(reader, directories)
    return [await look(reader, directory, view, fresh=fresh) for directory in directories]


def _nested_in(project: Project, view: View) -> set[str]:
    """The directories with something in force that are no base ones, as they are shown."""
    base = {directory.shown for directory in project.base}
    return {directory for directory in view.directories if directory is not None and directory not in base}


def _paths(project: Project, changes: Iterable[tuple[Change, File | None]]) -> frozenset[str]:
    shown = {change.key.directory for change, _ in changes if change.key.directory is not None}
    return frozenset(directory.path for directory in project.nested((), shown))


# --- the full list ----------------------------------------------------------------------------------------------------


async def _complete(
    project: Project, reader: Reader, view: View
) -> tuple[_Told | None, list[tuple[Change, File | None]], View]:
    """The full list, if there is one to show; what else it makes void; and the view of what stands beside it.

    A list that replaces an earlier one starts afresh and revokes all that it does not hold itself.
    """
    replaces = view.identity is not None
    beside = View() if replaces else view
    groups = await _look(project.base, reader, beside, fresh=True)
    files = [file for group in groups for file in group.files if file.content is not None]
    told: set[FileKey] = set()
    complete: _Told | None = None
    if files or replaces:
        block = _listing([(file, file.content) for file in files], project, replaces=replaces)
        text, places = write(block, select(block))
        sets = tuple(_set(files[place]) for place in places)
        told = {change.key for change in sets}
        void = [_removal(change) for change in view.in_force if change.key not in told] if replaces else []
        complete = (text, (*void, *sets))
    revoked: list[tuple[Change, File | None]] = [
        (_removal(change), None)
        for group in groups
        for change in beside.within(group.directory.shown)
        if change.key not in told and change.key not in group.unknown
    ]
    return complete, revoked, beside


def _set(file: File) -> Change:
    assert file.content is not None
    return Change(action="set", key=file.key, path=file.path, digest=file.content.digest)


def _removal(active: Change) -> Change:
    return Change(action="remove", key=active.key, path=active.path)


def _listing(files: Sequence[tuple[File, Content | None]], project: Project, *, replaces: bool) -> Block:
    parts = tuple(_part(file.path, texts.baseline_heading(file.path), content) for file, content in files)
    return Block(
        intro=texts.INTRO if parts else texts.NONE_ACTIVE,
        parts=parts,
        limit=project.settings.max_bytes,
        remark=texts.REPLACES if replaces and parts else "",
        spare=0 if replaces else _SPARE,
    )


def _part(path: str, heading: str, content: Content | None) -> Part:
    if content is None:
        return Part(path=path, heading=heading)
    return Part(path=path, heading=heading, size=content.size, lead=content.lead, content=content.text or "")


def _fitting(groups: Sequence[Group], project: Project, reader: Reader, view: View) -> frozenset[FileKey]:
    """The files that a full list would show now: what no longer fits is taken back, what fits again is told (X-05)."""
    files = [(file, _best_known(file, reader, view)) for group in groups for file in group.files]
    if not files:
        return frozenset()
    block = _listing(files, project, replaces=False)
    selection = select(block)
    if selection.level is Level.NOTICE or (selection.level is Level.HEADING and block.parts[-1].size):
        return frozenset()
    return frozenset(file.key for file, _ in files[selection.first :])


def _best_known(file: File, reader: Reader, view: View) -> Content | None:
    """What is known of a file's size; of one that cannot be read now, what was read when it was told of."""
    if file.content is not None:
        return file.content
    known, active = reader.known(file.place), view.active(file.key)
    return known if known is not None and active is not None and known.digest == active.digest else None


# --- changes ----------------------------------------------------------------------------------------------------------


async def _delta(changes: Sequence[tuple[Change, File | None]], project: Project, reader: Reader) -> _Told | None:
    """The block that tells of changes; None where there are none, or where not one of them could be told."""
    parts: list[Part] = []
    told: list[Change] = []
    for change, file in changes:
        content: Content | None = None
        if file is not None:
            assert file.content is not None
            assert file.found is not None
            content = file.content
            if content.text is None:
                content = await reader.content(file.place, file.found, fresh=True)
                if content is None:
                    continue
        told.append(attrs.evolve(change, digest=content.digest if content is not None else None))
        parts.append(_part(change.path, _heading(change), content))
    if not parts:
        return None
    block = Block(intro=texts.DELTA_INTRO, parts=tuple(parts), limit=project.settings.max_bytes)
    text, places = write(block, select(block))
    return (text, tuple(told[place] for place in places)) if places else None


def _heading(change: Change) -> str:
    match change.action:
        case "set":
            return texts.set_heading(change.path, change.key.directory)
        case "replace":
            return texts.replaced_heading(change.path)
        case "remove":
            return texts.removed_heading(change.path)
