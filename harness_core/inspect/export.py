"""Requests for use elsewhere: as a service's own JSON, as a curl command without the key, or in neutral form."""

from __future__ import annotations

import shlex
from typing import Any

from harness_core.models import ModelRequest, WireRequest
from harness_core.session.header import header_to_json, schema_to_json

__all__ = ["as_curl", "neutral_json"]

_NOT_IN_CURL = frozenset({"accept-encoding", "user-agent"})
"""Headers that matter to our client and would only puzzle whoever reads the command."""


def neutral_json(request: ModelRequest) -> dict[str, Any]:
    """The request as the log has it: nobody's vendor format."""
    return {
        "session": request.session_id,
        "header": header_to_json(request.header, schema_to_json),
        "messages": [message.to_json() for message in request.messages],
    }


def as_curl(wire: WireRequest) -> str:
    """A command for a POSIX shell that sends the request. Secrets stand there as the shell's variables."""
    lines = [f"curl -sS -N {shlex.quote(wire.url)}"]
    lines += [
        f"-H {shlex.quote(f'{name}: {value}')}" for name, value in wire.headers.items() if name not in _NOT_IN_CURL
    ]
    lines += [f'-H "{name}: {value}"' for name, value in wire.secrets.items()]
    lines.append(f"--data-binary {shlex.quote(wire.body.decode())}")
    return " \\\n  ".join(lines)
