"""Finding skills in folders. Tells "there is none" from "that cannot be told"; remembers by version what files said."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from harness_core import FileSystem
from harness_core.tools import FileInfo
from harness_skills._manifest import Manifest, ManifestError, parse

__all__ = ["Discovery", "Folder", "Skill", "discover", "load"]

FILE = "SKILL.md"
MOST_CHILDREN = 1000
"""Entries of one folder that are looked at."""


@attrs.frozen
class Folder:
    """A folder of skills: where it is, and how it is shown."""

    path: str
    shown: str


@attrs.frozen(kw_only=True)
class Skill:
    """A skill that was found. Two are equal when they are listed alike."""

    name: str
    description: str
    folder: str
    """Its folder as it is shown."""
    place: str = attrs.field(eq=False)
    """Where its file is."""


@attrs.frozen(kw_only=True)
class Discovery:
    """What was found: one skill of each name, in order. ``complete`` is False where something could not be looked at."""

    skills: tuple[Skill, ...]
    complete: bool

    def find(self, name: str) -> Skill | None:
        return next((skill for skill in self.skills if skill.name == name), None)


Memory = dict[str, tuple[str, "Skill | None"]]
"""By the file's path: the version that was read, and the skill in it, if it was one."""


@attrs.define
class _Search:
    files: FileSystem
    limit: int
    memory: Memory
    report: Callable[[str, str], None]
    complete: bool = True

    ahead: dict[str, FileInfo | OSError | None] = attrs.field(factory=dict[str, Any])

    async def look_ahead(self, paths: Sequence[str]) -> None:
        """Ask for all of these at once, where the file system can."""
        infos = getattr(self.files, "infos", None)
        if infos is not None:
            self.ahead.update(zip(paths, await infos(paths), strict=True))

    async def info(self, path: str) -> FileInfo | None:
        try:
            info = self.ahead[path] if path in self.ahead else await self.files.info(path)
        except (OSError, ValueError) as error:
            info = OSError(str(error))
        if isinstance(info, OSError):
            self.complete = False
            return None
        return info

    async def children(self, path: str) -> list[str]:
        try:
            return await self.files.children(path)
        except (OSError, ValueError):
            self.complete = False
            return []

    async def skill(self, folder: Folder, child: str, place: str) -> Skill | None:
        info = await self.info(place)
        if info is None or info.kind != "file":
            return None
        known = self.memory.get(place)
        if known is not None and known[0] == info.version:
            return known[1]
        try:
            manifest = await load(self.files, place, self.limit, info)
        except (OSError, UnicodeEncodeError):
            self.complete = False
            return None
        except ManifestError as error:
            self.report(place, str(error))
            self.memory[place] = (info.version, None)
            return None
        skill = Skill(
            name=manifest.name,
            description=manifest.description,
            folder=f"{folder.shown}/{child}",
            place=place,
        )
        self.memory[place] = (info.version, skill)
        return skill


async def load(files: FileSystem, place: str, limit: int, info: FileInfo | None = None) -> Manifest:
    """What a SKILL.md says now.

    Raises:
        OSError: it cannot be read.
        ManifestError: it is no skill, or none any more.
    """
    if info is None:
        info = await files.info(place)
    if info is None or info.kind != "file":
        raise ManifestError("there is no such file any more")
    if info.size is not None and info.size > limit:
        raise ManifestError(f"it is larger than {limit} bytes")
    data = await files.read(place, limit + 1)
    if len(data) > limit:
        raise ManifestError(f"it is larger than {limit} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ManifestError("it is not UTF-8 text") from None
    return parse(text, os.path.basename(os.path.dirname(place)))


async def discover(
    files: FileSystem,
    folders: Sequence[Folder],
    limit: int,
    memory: Memory,
    report: Callable[[str, str], None],
) -> Discovery:
    """All skills in these folders; ``report`` is told of files that are none: their path, and why."""
    search = _Search(files, limit, memory, report)
    found: dict[str, Skill] = {}
    await search.look_ahead([folder.path for folder in folders])
    for folder in folders:
        info = await search.info(folder.path)
        if info is None or info.kind != "directory":
            continue
        # Names that do not print could stand in no list, and some of them in no log.
        children = [name for name in (await search.children(folder.path))[:MOST_CHILDREN] if name.isprintable()]
        places = [f"{folder.path}/{child}/{FILE}" for child in children]
        await search.look_ahead(places)
        for child, place in zip(children, places, strict=True):
            skill = await search.skill(folder, child, place)
            if skill is not None:
                found.setdefault(skill.name, skill)
    return Discovery(skills=tuple(found.values()), complete=search.complete)
