"""Reading a SKILL.md: its front matter, and the text behind it. Pure; refuses with a reason what is no skill."""

from __future__ import annotations

import re
from typing import Any

import attrs
import yaml

__all__ = ["Manifest", "ManifestError", "parse"]

MOST_FRONT_MATTER = 16 * 1024
"""Characters of front matter that are parsed: enough for every honest one, and too few to keep a parser busy."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FENCE = re.compile(r"-{3}[ \t]*(?:\r?\n|\Z)")
_CLOSING = re.compile(r"^(?:-{3}|\.{3})[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


class ManifestError(Exception):
    """The file is no skill; the message says why, for people."""


@attrs.frozen(kw_only=True)
class Manifest:
    """What a SKILL.md says."""

    name: str
    description: str
    body: str = attrs.field(repr=False)


def parse(text: str, folder: str) -> Manifest:
    """The skill in this text; ``folder`` is the name of its folder, which counts where the front matter has none.

    Raises:
        ManifestError: it is none.
    """
    text = text.removeprefix("\ufeff")
    opening = _FENCE.match(text)
    if opening is None:
        raise ManifestError("it does not begin with front matter between lines of ---")
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise ManifestError("its front matter has no end")
    fields = _fields(text[opening.end() : closing.start()])
    name, description = fields.get("name", folder), fields.get("description")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ManifestError(f"its name {name!r:.80} is not made of up to 64 letters, digits, hyphens and underscores")
    if not isinstance(description, str) or not _on_one_line(description):
        raise ManifestError("it has no description")
    return Manifest(name=name, description=_on_one_line(description), body=text[closing.end() :].strip("\r\n"))


def _on_one_line(text: str) -> str:
    """Without line breaks, and without what a list or a log could not carry."""
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())


def _fields(source: str) -> dict[Any, Any]:
    if len(source) > MOST_FRONT_MATTER:
        raise ManifestError(f"its front matter is longer than {MOST_FRONT_MATTER} characters")
    try:
        # This loader makes texts, lists and mappings and nothing else: "name: 1" and "description: no" stay texts.
        fields = yaml.load(source, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(f"its front matter is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(fields, dict):
        raise ManifestError("its front matter is not a list of fields")
    return fields
