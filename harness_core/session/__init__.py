"""The session and its log: events, surface, headers, stores, repair and replay. Knows no prompts, plugins or agents."""

from harness_core.session._clock import Clock, IdSource, random_id, system_clock
from harness_core.session._prefix import Prefix
from harness_core.session.codec import FORMAT_VERSION, event_to_json
from harness_core.session.digest import header_digest, request_digest, tool_digest
from harness_core.session.errors import (
    LogDamagedError,
    LogFormatError,
    LogOrderError,
    SessionClosedError,
    SessionError,
    SessionExistsError,
    SessionLockedError,
    SessionNotFoundError,
    StoreError,
    SurfaceError,
)
from harness_core.session.events import (
    APPEND,
    AbortCause,
    AssistantChunk,
    AssistantMessageLogged,
    Event,
    EventData,
    HeaderReason,
    HeaderWritten,
    InboxSpliced,
    InboxTarget,
    PluginRecord,
    RequestContext,
    RequestDispatch,
    RequestRetry,
    SessionInfo,
    SessionSeeded,
    StepEnd,
    StepStart,
    SurfaceAppend,
    SurfaceOperation,
    SurfaceReplace,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessageLogged,
)
from harness_core.session.file_store import FileStore, read_log_file
from harness_core.session.fork import seed_events
from harness_core.session.listing import SessionSummary, list_sessions
from harness_core.session.log import Durability, Observation, Session
from harness_core.session.nesting import Nesting
from harness_core.session.reading import LogContents, read_lines, read_log
from harness_core.session.repair import closers
from harness_core.session.replay import (
    InboxLists,
    RebuiltRequest,
    Verification,
    check_request,
    rebuild_requests,
    replay_inbox,
    verify,
)
from harness_core.session.store import LogWriter, MemoryStore, SessionStore, StoredLog
from harness_core.session.surface import Surface
from harness_core.session.trail import MessageTrail

__all__ = [
    "APPEND", "FORMAT_VERSION", "AbortCause", "AssistantChunk", "AssistantMessageLogged", "Clock", "Durability",
    "Event", "EventData", "FileStore", "HeaderReason", "HeaderWritten", "IdSource", "InboxLists", "InboxSpliced",
    "InboxTarget", "LogContents", "LogDamagedError", "LogFormatError", "LogOrderError", "LogWriter", "MemoryStore",
    "MessageTrail", "Nesting", "Observation", "PluginRecord", "Prefix", "RebuiltRequest", "RequestContext",
    "RequestDispatch", "RequestRetry", "Session", "SessionClosedError", "SessionError", "SessionExistsError",
    "SessionInfo", "SessionLockedError", "SessionNotFoundError", "SessionSeeded", "SessionStore", "SessionSummary",
    "StepEnd", "StepStart", "StoreError", "StoredLog", "Surface", "SurfaceAppend", "SurfaceError", "SurfaceOperation",
    "SurfaceReplace", "ToolCallStarted", "ToolResultLogged", "TurnEnd", "TurnReason", "TurnStart", "UserMessageLogged",
    "Verification", "check_request", "closers", "event_to_json", "header_digest", "list_sessions", "random_id",
    "read_lines", "read_log", "read_log_file", "rebuild_requests", "replay_inbox", "request_digest", "seed_events", "system_clock",
    "tool_digest", "verify",
]  # fmt: skip
