"""What the model does not see: the elements of an assembly that hold a text which is not in the prompt, and known names.

Says only which elements they are; why each of them is not there, or reads otherwise, is what explanation.py tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness_core.inspect.difference import name_of
from harness_core.inspect.trace import AssemblyTrace, DispatchTrace
from harness_core.prompt import ContextEntry, Section
from harness_core.prompt.spans import source_text, text_spans

__all__ = ["known_names", "lost_text"]


def lost_text(trace: AssemblyTrace, fragment: str, step: DispatchTrace | None = None) -> list[str]:
    """The names of elements that had the text at any time: registered, given by a provider, or made by a listener.

    A message is named by its id.
    """
    variables = trace.final.variables if trace.final is not None else {}
    names = [each.name for each in _entries(trace) if fragment in source_text(each.fixed)]
    names += [name_of(each) for each in _elements(trace, step) if any(fragment in t for t in _texts(each, variables))]
    return list(dict.fromkeys(names)) if fragment else []


def known_names(trace: AssemblyTrace) -> list[str]:
    """The names under which an assembly has something that can be explained, and those that it had."""
    names = [entry.name for entry in trace.entries if entry.kind in ("section", "context", "variable")]
    return list(dict.fromkeys([*names, *map(name_of, _elements(trace, None))]))


def _entries(trace: AssemblyTrace) -> Iterator[Any]:
    return (entry for entry in trace.entries if entry.kind in ("section", "context"))


def _elements(trace: AssemblyTrace, step: DispatchTrace | None) -> Iterator[Any]:
    """All that stood in the lists at any time, as far as the traces go."""
    yield from (entry.record for entry in _entries(trace) if entry.record is not None)
    for lane in ("sections", "contexts", "tools"):
        yield from trace.given.lanes[lane] if trace.given is not None else ()
    yield from step.given.lanes.get("messages", ()) if step is not None else ()
    for dispatch in (trace.dispatch, step):
        for _, change in dispatch.touches() if dispatch is not None else ():
            if change.lane != "variables":
                yield from (each for each in (change.before, change.after) if each is not None)


def _texts(element: Any, variables: Mapping[str, str | None]) -> tuple[str, ...]:
    """What an element says, as it was written and as it would be rendered."""
    if not isinstance(element, (Section, ContextEntry)):
        return (str(getattr(element, "description", None) or getattr(element, "text", "")),)
    source = source_text(element.text)
    spans = text_spans(element, variables)
    return source, "".join(
        source[slice(*span.source)] if span.variable is None else str(variables[span.variable]) for span in spans
    )
