"""Notices of what goes: who uses it, what to use instead, and the version that no longer has it.

Owns the warning and its wording, and when a deprecation of the core is due. What is deprecated is said where it is
defined: on a hook's specification, or as the former name of a section or context.
"""

from __future__ import annotations

import warnings

__all__ = ["HarnessDeprecationWarning", "deprecated"]

_GRACE = 2
"""Minor versions for which the core keeps what it deprecates."""


class HarnessDeprecationWarning(FutureWarning):
    """Something still works, and goes. A `FutureWarning`, since whoever runs a plugin wants to see it in time.

    ``what`` goes with ``gone``, a distribution and its version; ``instead`` is what to use; ``user`` is the plugin (with
    distribution and version) or the scope that uses it, None until that is known.
    """

    def __init__(self, what: str, *, instead: str, gone: str, user: str | None = None) -> None:
        subject = f"{user} uses {what}, which" if user is not None else what
        super().__init__(f"{subject} goes with {gone}. Use {instead}.")
        self.what = what
        self.instead = instead
        self.gone = gone
        self.user = user

    def tell(self, user: str, place: tuple[str | None, int | None] | None) -> None:
        """Warn that ``user`` needs it, at the file and line where that is written."""
        file, line = place or (None, None)
        told = HarnessDeprecationWarning(self.what, instead=self.instead, gone=self.gone, user=user)
        warnings.warn_explicit(told, None, file or "<unknown>", line or 0)


def deprecated(what: str, *, instead: str, since: str) -> HarnessDeprecationWarning:
    """A deprecation of the core's own: it goes two minor versions after ``since``, a version such as ``"0.3"``.

    A check fails once the core's version has reached that and the call is still there.
    """
    major, minor = (int(part) for part in since.split(".")[:2])
    return HarnessDeprecationWarning(what, instead=instead, gone=f"pluggy-harness {major}.{minor + _GRACE}")
