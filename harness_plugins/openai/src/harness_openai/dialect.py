"""How the servers of one family differ in what they want to read.

A dialect is data and pure functions. Its encoders are functions of this module, because a message keeps what an encoder
made of it for as long as both live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from harness_core.models import Message
from harness_openai.encoding import message_text, message_text_with_reasoning

__all__ = ["DEEPSEEK", "OPENAI", "Dialect"]


def _effort(value: str) -> dict[str, Any]:
    return {"reasoning_effort": value}


def _deepseek_effort(value: str) -> dict[str, Any]:
    """DeepSeek switches thinking by a field of its own; the effort is read only while it is on."""
    return {"thinking": {"type": "disabled"}} if value == "none" else {"reasoning_effort": value}


@attrs.frozen(kw_only=True)
class Dialect:
    """``encode`` makes one message's JSON text, ``effort`` the fields that stand for a configured effort."""

    encode: Callable[[Message], str] = message_text
    effort: Callable[[str], Mapping[str, Any]] = _effort
    max_tokens_field: str = "max_tokens"


OPENAI = Dialect()

DEEPSEEK = Dialect(encode=message_text_with_reasoning, effort=_deepseek_effort)
