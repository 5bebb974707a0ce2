"""What answers when no model service is configured: a script that really uses the tools it is given.

It lists the workspace, reads a few of its text files through the agent's own tools, and says what it read. Nothing is
sent anywhere, and nothing of the answer is invented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness_core.models.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from harness_core.models.request import ModelRequest
from harness_core.models.scripted import ScriptedAnswer, ScriptedModel

__all__ = ["OFFLINE_PROVIDER", "offline_model"]

OFFLINE_PROVIDER = "offline"

_FILES_READ = 3
"""Enough to show that the tools work; the point is not to summarise."""
_PREFERRED = ("README.md", "README.rst", "README", "pyproject.toml", "package.json", "Makefile", "AGENTS.md")
_READABLE = re.compile(r"\.(md|rst|txt|toml|json|ya?ml|cfg|ini|py|js|ts|rs|go|c|h|sh)$")


def offline_model() -> ScriptedModel:
    """The model of the `OFFLINE_PROVIDER`."""
    return ScriptedModel(otherwise=_answer, model="scripted")


def _answer(request: ModelRequest) -> ScriptedAnswer | str:
    tools = {tool.name for tool in request.header.tools}
    done = _since_last_prompt(request.messages)
    results = [message for message in done if isinstance(message, ToolResultMessage)]
    if "list" not in tools or "read" not in tools:
        return (
            "No model service is configured, and no workspace tools are installed, so I cannot look at anything. "
            "Install pluggy-harness-workspace for the tools, or name a provider and a model."
        )
    listing = next((result for result in results if result.name == "list"), None)
    if listing is None:
        return ScriptedAnswer(text="Let me look at the folder.", calls=[("list", {})])
    entries = listing.text.splitlines()
    chosen = _chosen(entries)
    reads = [result for result in results if result.name == "read"]
    if chosen and not reads:
        return ScriptedAnswer(calls=[("read", {"file_path": name, "limit": 40}) for name in chosen])
    return _report(entries, chosen, reads)


def _since_last_prompt(messages: Sequence[Message]) -> Sequence[Message]:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and message.source.kind == "user":
            return messages[index + 1 :]
        if isinstance(message, AssistantMessage) and not message.tool_calls:
            return messages[index + 1 :]
    return messages


def _chosen(entries: Sequence[str]) -> list[str]:
    files = [entry for entry in entries if not entry.endswith(("/", "@", "]"))]
    named = [name for name in _PREFERRED if name in files]
    rest = [name for name in files if name not in named and _READABLE.search(name)]
    return [*named, *rest][:_FILES_READ]


def _report(entries: Sequence[str], chosen: Sequence[str], reads: Sequence[ToolResultMessage]) -> str:
    folders = [entry for entry in entries if entry.endswith("/")]
    lines = [f"The folder holds {len(entries)} entries, {len(folders)} of them folders."]
    for name, result in zip(chosen, reads, strict=False):
        shown = [re.sub(r"^\s*\d+\s\s", "", line) for line in result.text.splitlines()]
        first = next((line.strip() for line in shown if line.strip()), "")
        lines.append(f"- I read {name}; it begins with: {first[:120]!r}." if first else f"- {name} is empty.")
    lines.append("(No model service is configured; this answer comes from a script that used the tools for real.)")
    return "\n".join(lines)
