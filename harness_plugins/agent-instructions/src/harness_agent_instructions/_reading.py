"""Asking the file system: what is at a path, and what a file says. Bounded; tells "absent" from "cannot be told".

Remembers what files said by their versions, but never their text: memory may save a read, and decides nothing (PRE-09).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import attrs

from harness_core import FileSystem
from harness_core.tools import FileInfo

__all__ = ["ABSENT", "UNAVAILABLE", "Content", "Found", "Probe", "Reader"]

READ_AT_MOST = 16
"""Files of the largest allowed size that one pass may read in all (X-10)."""

_JS_WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""White space as most tools that read such files trim it, the byte order mark included."""


class Nothing(Enum):
    """Why there is no file: it does not exist, or that cannot be told. The two are never the same."""

    ABSENT = "absent"
    UNAVAILABLE = "unavailable"


ABSENT, UNAVAILABLE = Nothing.ABSENT, Nothing.UNAVAILABLE


@attrs.frozen
class Found:
    """Something is there; ``size`` where it is known beforehand."""

    version: str
    size: int | None


Probe: TypeAlias = Found | Nothing


@attrs.frozen(kw_only=True)
class Content:
    """What is known of a file's text: enough to compare it and to tell whether it fits, without keeping it."""

    version: str
    digest: str
    trimmed: str
    """The digest of the text without outer white space, by which files of one directory are duplicates."""
    size: int
    lead: int
    """Bytes of the first character, 0 where there is none: the least that can be shown of the text."""
    text: str | None = attrs.field(default=None, repr=False)

    @classmethod
    def of(cls, text: str, version: str) -> Content:
        return cls(
            version=version,
            digest=_sha1(text),
            trimmed=_sha1(text.strip(_JS_WHITE_SPACE)),
            size=len(text.encode("utf-8")),
            lead=len(text[:1].encode("utf-8")),
            text=text,
        )


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8"), usedforsecurity=False).hexdigest()


class Reader:
    """One pass over the file system, over the memory of a session."""

    def __init__(self, files: FileSystem, limit: int, memory: dict[str, Content]) -> None:
        self._files = files
        self._limit = limit
        self._memory = memory
        self._left = READ_AT_MOST * limit
        self._ahead: dict[str, FileInfo | OSError | None] = {}

    async def look_ahead(self, paths: Sequence[str]) -> None:
        """Ask for all of these at once, where the file system can, before they are probed one by one."""
        infos = getattr(self._files, "infos", None)
        if infos is None:
            return
        try:
            answers = await infos(paths)
        except Exception:  # they are probed one by one then, and each error comes up where it belongs
            return
        self._ahead.update(zip(paths, answers, strict=True))

    async def probe(self, path: str, *, any_kind: bool = False) -> Probe:
        """What is at a path, links followed; anything but a regular file counts as absent unless ``any_kind``."""
        try:
            info = self._ahead[path] if path in self._ahead else await self._files.info(path)
        except (OSError, ValueError):
            return UNAVAILABLE
        if isinstance(info, OSError):
            return UNAVAILABLE
        if info is None or not (any_kind or info.kind == "file"):
            return ABSENT
        return Found(info.version, info.size)

    def known(self, path: str) -> Content | None:
        """What was read there last, without its text."""
        return self._memory.get(path)

    async def content(self, path: str, found: Found, *, fresh: bool = False) -> Content | None:
        """What the file says; from memory where its version is the one that was read, unless ``fresh``.

        None when it cannot be read now: too large, not UTF-8, gone meanwhile, or too much was read in this pass.
        """
        known = self._memory.get(path)
        if known is not None and known.version == found.version and not fresh:
            return known
        text = await self._text(path, found.size)
        if text is None:
            return None
        content = Content.of(text, found.version)
        self._memory[path] = attrs.evolve(content, text=None)
        return content

    async def _text(self, path: str, size: int | None) -> str | None:
        allowed = min(self._limit, self._left)
        if size is not None and size > allowed:
            return None
        try:
            data = await self._files.read(path, allowed + 1)
            self._left -= min(len(data), allowed)
            return None if len(data) > allowed else data.decode("utf-8")
        except (OSError, ValueError):
            return None
