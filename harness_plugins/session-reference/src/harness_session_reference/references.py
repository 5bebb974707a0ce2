"""References as a caller names them: checked, in order, each session once. Reads no session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness_session_reference.errors import ReferenceProblem, SessionReferenceError

__all__ = ["Reference", "normalised"]


@attrs.frozen
class Reference:
    """A session, and how to call it; without a label it is called by its id."""

    id: str
    label: str | None = None

    @property
    def shown(self) -> str:
        return self.id if self.label is None else self.label


def normalised(references: Iterable[object], target: str | None, most: int) -> list[Reference]:
    """The references, each session once and under its first label (SREF-02).

    Args:
        references: `Reference` records, or mappings with ``id`` and perhaps ``label``.
        target: the session that refers, which may not mean itself.
        most: how many sessions there may be.

    Raises:
        SessionReferenceError: the first thing that is wrong, in the order of the list; too many only after that.
    """
    if isinstance(references, (str, bytes, Mapping)) or not isinstance(references, Iterable):
        raise _invalid(f"References come as a list, not as {type(references).__name__}.")
    found: dict[str, Reference] = {}
    for index, each in enumerate(references):
        reference = _reference(index, each)
        if reference.id == target:
            raise SessionReferenceError(
                ReferenceProblem.SELF_REFERENCE,
                f"The session {target!r} refers to itself.",
                remedy="What was said in it is known already.",
                entry=target,
            )
        found.setdefault(reference.id, reference)
    if len(found) > most:
        raise SessionReferenceError(
            ReferenceProblem.TOO_MANY,
            f"A message refers to {len(found)} sessions; {most} are allowed.",
            remedy="Refer to the others in a later message, or raise max_references.",
        )
    return list(found.values())


def _reference(index: int, value: Any) -> Reference:
    if isinstance(value, Reference):
        session: object = value.id
        label: object = value.label
    elif isinstance(value, Mapping):
        session, label = value.get("id"), value.get("label")
    else:
        raise _invalid(f"Reference {index} is no reference but {type(value).__name__}.")
    return Reference(_text(session, "id", index), None if label is None else _text(label, "label", index))


def _text(value: object, what: str, index: int) -> str:
    if not isinstance(value, str):
        raise _invalid(f"The {what} of reference {index} must be a text, not {value!r:.40}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _invalid(f"The {what} of reference {index} holds a lone surrogate: {value!r:.40}.") from None
    return value


def _invalid(problem: str) -> SessionReferenceError:
    return SessionReferenceError(
        ReferenceProblem.INVALID_REFERENCE, problem, remedy="Name each session by its id, and perhaps a label."
    )
