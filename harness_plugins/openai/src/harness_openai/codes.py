"""The codes under which failures are known, and which of them may pass by themselves (LLM-04)."""

from __future__ import annotations

from typing import Final

# --- nothing was answered ---------------------------------------------------------------------------------------------
NO_KEY: Final = "NO_KEY"
CONNECTION_REFUSED: Final = "CONNECTION_REFUSED"
DNS: Final = "DNS"
TLS: Final = "TLS"
PROXY: Final = "PROXY"
CONNECTION_FAILED: Final = "CONNECTION_FAILED"
CONNECTION_LOST: Final = "CONNECTION_LOST"
CONNECT_TIMEOUT: Final = "CONNECT_TIMEOUT"
FIRST_BYTE_TIMEOUT: Final = "FIRST_BYTE_TIMEOUT"

# --- the service refused ----------------------------------------------------------------------------------------------
BAD_REQUEST: Final = "BAD_REQUEST"
CONTEXT_OVERFLOW: Final = "CONTEXT_OVERFLOW"
AUTHENTICATION: Final = "AUTHENTICATION"
PAYMENT_REQUIRED: Final = "PAYMENT_REQUIRED"
FORBIDDEN: Final = "FORBIDDEN"
MODEL_NOT_FOUND: Final = "MODEL_NOT_FOUND"
NOT_FOUND: Final = "NOT_FOUND"
REQUEST_TOO_LARGE: Final = "REQUEST_TOO_LARGE"
RATE_LIMITED: Final = "RATE_LIMITED"
OVERLOADED: Final = "OVERLOADED"
SERVER_ERROR: Final = "SERVER_ERROR"
UNEXPECTED_STATUS: Final = "UNEXPECTED_STATUS"

# --- the answer is not one --------------------------------------------------------------------------------------------
NOT_A_STREAM: Final = "NOT_A_STREAM"
MALFORMED_STREAM: Final = "MALFORMED_STREAM"
EMPTY_STREAM: Final = "EMPTY_STREAM"
STREAM_CUT: Final = "STREAM_CUT"
STREAM_TIMEOUT: Final = "STREAM_TIMEOUT"
UNKNOWN_FINISH_REASON: Final = "UNKNOWN_FINISH_REASON"
CONTENT_FILTERED: Final = "CONTENT_FILTERED"

RETRYABLE: Final = frozenset(
    {
        CONNECTION_REFUSED,
        DNS,
        CONNECTION_FAILED,
        CONNECTION_LOST,
        CONNECT_TIMEOUT,
        FIRST_BYTE_TIMEOUT,
        RATE_LIMITED,
        OVERLOADED,
        SERVER_ERROR,
        MALFORMED_STREAM,
        EMPTY_STREAM,
        STREAM_CUT,
        STREAM_TIMEOUT,
    }
)
"""The same request may succeed later."""
