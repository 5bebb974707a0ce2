"""One framed block of text within a limit of bytes: what of it can be shown, and then the text. Pure, and exact to the byte.

What fits is decided from sizes alone, so that it can be asked without the files' text (`select`); writing the block out
needs the text of what was selected (`write`). The ladder, from the top: everything; the most specific files, the
broadest left out and named; the most specific file alone, cut; a notice; the beginning of a notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import attrs

from harness_agent_instructions import _texts as texts

__all__ = ["Block", "Level", "Part", "Selection", "select", "write"]


@attrs.frozen(kw_only=True)
class Part:
    """One file in a block: its heading, and its content by size; a removal has none. ``content`` only for writing."""

    path: str
    heading: str
    size: int = 0
    lead: int = 0
    """Bytes of the content's first character."""
    content: str = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class Block:
    """What is to be shown within ``limit`` bytes. ``remark`` is a sentence that follows the intro, in whatever form.

    ``spare`` bytes are kept free, so that the same files fit with and without a remark.
    """

    intro: str
    parts: tuple[Part, ...]
    limit: int
    remark: str = ""
    spare: int = 0


class Level(Enum):
    """How much of a block can be shown."""

    ALL = auto()
    LAST_ONES = auto()
    CUT = auto()
    HEADING = auto()
    NOTICE = auto()


@attrs.frozen(kw_only=True)
class Selection:
    """What of a block can be shown: the parts from ``first`` on; of the last one ``kept`` bytes where it is cut."""

    level: Level
    first: int = 0
    kept: int = 0
    short: bool = False
    """With the short intro."""


_SEPARATOR = "\n\n"
_AROUND = len(texts.OPEN) + len(texts.CLOSE) + 2


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def _size(part: Part) -> int:
    return _bytes(part.heading) + (1 + part.size if part.size else 0)


def _framed_size(sizes: Sequence[int]) -> int:
    return _AROUND + sum(sizes) + len(_SEPARATOR) * (len(sizes) - 1)


def select(block: Block) -> Selection:
    """The first rung of the ladder that keeps within the limit."""
    limit = block.limit - block.spare
    parts, sizes = block.parts, [_size(part) for part in block.parts]
    intro = _bytes(_intro(block))
    if _framed_size([intro, *sizes]) <= limit:
        return Selection(level=Level.ALL)
    for first in range(1, len(parts)):
        if _framed_size([_bytes(_notice(block, first)), intro, *sizes[first:]]) <= limit:
            return Selection(level=Level.LAST_ONES, first=first)
    if parts:
        last = len(parts) - 1
        for short in (False, True):
            kept = _room(block, short=short)
            if kept >= parts[-1].lead > 0:
                return Selection(level=Level.CUT, first=last, kept=kept, short=short)
        bare = f"{_bare_notice(block)}{_SEPARATOR}{parts[-1].heading}"
        if _bytes(bare) <= limit:
            return Selection(level=Level.HEADING, first=last)
    return Selection(level=Level.NOTICE, first=len(parts))


def _intro(block: Block, *, short: bool = False) -> str:
    intro = texts.SHORT_INTRO if short else block.intro
    return f"{intro} {block.remark}" if block.remark else intro


def _bare_notice(block: Block) -> str:
    """The notice that stands alone, outside of the frame."""
    notice = _notice(block, len(block.parts)) if block.parts else block.intro
    return f"{block.remark} {notice}" if block.remark else notice


def _notice(block: Block, first: int) -> str:
    return texts.left_out_notice([part.path for part in block.parts[:first]], block.limit)


def _cut_notice(block: Block, kept: int | str) -> str:
    *others, last = block.parts
    return texts.cut_notice([part.path for part in others], last.path, last.size, kept)


def _room(block: Block, *, short: bool) -> int:
    """The most bytes of the last part's content that fit beside a notice which names their number."""
    last = block.parts[-1]
    fixed = [_bytes(_cut_notice(block, "")), _bytes(_intro(block, short=short)), _bytes(last.heading) + 1]
    free = block.limit - block.spare - _framed_size(fixed)
    kept = min(free, last.size)
    while kept > 0 and len(str(kept)) + kept > free:
        kept -= 1
    return max(kept, 0)


def write(block: Block, selection: Selection) -> tuple[str, tuple[int, ...]]:
    """The text, and which parts it really tells of: their places in the block."""
    parts, limit = block.parts, block.limit
    match selection.level:
        case Level.ALL | Level.LAST_ONES:
            first = selection.first
            notice = [_notice(block, first)] if first else []
            text = _framed([*notice, _intro(block), *(_written(part, part.content) for part in parts[first:])])
            return text, tuple(range(first, len(parts)))
        case Level.CUT:
            content = cut(texts.sealed(parts[-1].content), selection.kept)
            intro = _intro(block, short=selection.short)
            text = _framed([_cut_notice(block, _bytes(content)), intro, _written(parts[-1], content)])
            return text, (len(parts) - 1,)
        case Level.HEADING:
            # A heading says all there is to say only where there is no content.
            told = () if parts[-1].size else (len(parts) - 1,)
            return f"{_bare_notice(block)}{_SEPARATOR}{parts[-1].heading}", told
        case Level.NOTICE:
            return cut(_bare_notice(block), limit), ()


def _written(part: Part, content: str) -> str:
    return f"{part.heading}\n{texts.sealed(content)}" if content else part.heading


def _framed(pieces: Sequence[str]) -> str:
    return f"{texts.OPEN}\n{_SEPARATOR.join(pieces)}\n{texts.CLOSE}"


def cut(text: str, size: int) -> str:
    """The longest beginning of a text that takes at most ``size`` bytes; never splits a character."""
    return text.encode("utf-8")[: max(size, 0)].decode("utf-8", "ignore")
