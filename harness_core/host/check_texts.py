"""The checks on texts: references, characters that nobody can see, and tools that are named but hidden."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness_core._text import nearest, quoted, quoted_list
from harness_core.errors import RenderError
from harness_core.host.findings import Finding, about
from harness_core.host.scope import Scope
from harness_core.prompt import Literal, PromptAssembly, Text
from harness_core.prompt._entries import TextEntry, VariableEntry
from harness_core.prompt._template import Place, parse, substitute

if TYPE_CHECKING:
    from harness_core.host.harness import Harness

__all__ = ["text_findings"]

_NAMED_TOOL = re.compile(r"`([A-Za-z_][\w.-]{1,63})(?:\(\))?`")
"""A word in backquotes: how guidance names a tool."""


def text_findings(
    harness: Harness, scope: Scope, entries: Sequence[TextEntry], assembly: PromptAssembly | None
) -> Iterator[Finding]:
    """What can be said of the texts that a scope sees: static ones, and dynamic ones as they were assembled."""
    variables = {entry.name for entry in harness.prompt.entries(scope) if isinstance(entry, VariableEntry)}
    visible = {tool.name for tool in assembly.tools} if assembly is not None else None
    known = set(harness.tools.view(scope).known) | set(harness.tools.view(harness.root).known)
    for entry in entries:
        text = _text_of(entry, assembly)
        facts: dict[str, Any] = {
            "scope": scope.name,
            "kind": entry.kind,
            "entry": entry.name,
            **about(entry.origin, entry.place),
        }
        who = f"the {entry.kind} {quoted(entry.name)} of {entry.origin}"
        if entry.interpolate:
            yield from _references(text, entry, variables, who, facts)
        yield from _invisible(text, who, facts)
        if visible is not None:
            yield from _hidden_tools(text, known - visible, who, facts)


def _text_of(entry: TextEntry, assembly: PromptAssembly | None) -> Text:
    if entry.provider is None:
        return entry.fixed
    found = None
    if assembly is not None:
        found = assembly.section(entry.name) if entry.kind == "section" else assembly.context(entry.name)
    return found.text if found is not None else ""


def _parts(text: Text) -> tuple[str | Literal, ...]:
    return text if isinstance(text, tuple) else (text,)


def _references(
    text: Text, entry: TextEntry, variables: set[str], who: str, facts: dict[str, Any]
) -> Iterator[Finding]:
    for part in _parts(text):
        if isinstance(part, Literal):
            continue
        parsed = parse(part)
        for name in dict.fromkeys(parsed.names):
            if name not in variables:
                near = nearest(name, variables)
                yield Finding(
                    code="unknown-variable",
                    message=f"{{{{{name}}}}} in {who} is no variable here; known: {quoted_list(sorted(variables))}.",
                    remedy=f"Did you mean {near!r}?" if near else "Register the variable, or use Literal for data.",
                    **facts,
                )
        if parsed.fault is not None:
            try:
                substitute(part, dict.fromkeys(parsed.names, ""), lambda: Place(kind=entry.kind, entry=entry.name))
            except RenderError as error:
                yield Finding(code="malformed-reference", message=error.message, remedy=error.remedy, **facts)


def _invisible(text: Text, who: str, facts: dict[str, Any]) -> Iterator[Finding]:
    whole = "".join(part.text if isinstance(part, Literal) else part for part in _parts(text))
    if whole.isascii():
        return
    found = sorted({ch for ch in whole if unicodedata.category(ch) == "Cf" and ch != "\u00ad"})
    if found:
        names = quoted_list(f"U+{ord(ch):04X} {unicodedata.name(ch, '')}".strip() for ch in found)
        yield Finding(
            code="zero-width",
            message=f"{_begun(who)} holds characters that nobody can see: {names}.",
            remedy="Remove them; braces need no such escape: put data into Literal(...).",
            **facts,
        )


def _begun(words: str) -> str:
    """The words as the beginning of a sentence; names in them stay as they are."""
    return words[:1].upper() + words[1:]


def _hidden_tools(text: Text, hidden: set[str], who: str, facts: dict[str, Any]) -> Iterator[Finding]:
    whole = "".join(part.text if isinstance(part, Literal) else part for part in _parts(text))
    named = sorted(set(_NAMED_TOOL.findall(whole)) & hidden)
    if named:
        yield Finding(
            code="hidden-tool-named",
            message=f"{_begun(who)} names {quoted_list(named)}, which the model cannot see in this scope.",
            remedy="Bind the section to its tools: section(..., tools=[...]).",
            **facts,
        )
