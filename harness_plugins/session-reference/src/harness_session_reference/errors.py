"""What can be wrong with a reference to another session: one error, told apart by its problem."""

from __future__ import annotations

from enum import Enum

from harness_core import HarnessError

__all__ = ["PLUGIN", "ReferenceProblem", "SessionReferenceError"]

PLUGIN = "session-reference"
"""The plugin's name, and the kind of the messages that it adds."""


class ReferenceProblem(Enum):
    """Why a reference, or something about references, was refused."""

    INVALID_CONFIG = "invalid-config"
    INVALID_REFERENCE = "invalid-reference"
    SELF_REFERENCE = "self-reference"
    TOO_MANY = "too-many"
    READ_FAILED = "read-failed"
    BUDGET_EXCEEDED = "budget-exceeded"
    CANCELLED = "cancelled"


class SessionReferenceError(HarnessError, ValueError):
    """A reference that cannot be followed; nothing of the message that it belongs to was used.

    ``problem`` says why, ``entry`` is the session's id where one is at fault.
    """

    code = "session-reference"

    def __init__(self, problem: ReferenceProblem, message: str, *, remedy: str = "", entry: str | None = None) -> None:
        super().__init__(message, remedy=remedy, plugin=PLUGIN, entry=entry)
        self.problem = problem
