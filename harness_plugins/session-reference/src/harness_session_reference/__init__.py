"""References to other sessions for pluggy-harness: a bounded copy of their conversation as background."""

from harness_session_reference.candidates import Candidate
from harness_session_reference.config import Config
from harness_session_reference.errors import ReferenceProblem, SessionReferenceError
from harness_session_reference.mentions import mention, uri
from harness_session_reference.plugin import SessionReference
from harness_session_reference.references import Reference
from harness_session_reference.service import Prepared, SessionReferences

__all__ = [
    "Candidate",
    "Config",
    "Prepared",
    "Reference",
    "ReferenceProblem",
    "SessionReference",
    "SessionReferenceError",
    "SessionReferences",
    "mention",
    "uri",
]
