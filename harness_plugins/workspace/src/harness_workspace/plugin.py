"""The plugin: which tools are offered, their schemas, and the step from a call to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field, validators

from harness_core import FileSystem, PluginContext, Shell, ToolCall, ToolOutcome, ToolSchema, hookimpl
from harness_workspace import _files
from harness_workspace._paths import PathRefusedError, resolve
from harness_workspace._services import LocalFiles, LocalShell

__all__ = ["Config", "Workspace"]

GUIDANCE_ORDER = 100
"""Tool guidance stands after the deployment's own text and before what depends on it."""

_PATH = {"type": "string", "description": "A path below the workspace, relative to it."}
_COUNT = {"type": "integer", "minimum": 1}


def _schema(name: str, description: str, required: list[str], **properties: Any) -> ToolSchema:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolSchema(name, description, parameters)


READ = _schema(
    "read",
    "Read a text file of the workspace, with line numbers.",
    ["file_path"],
    file_path=_PATH,
    offset={**_COUNT, "description": "The first line to read; 1 by default."},
    limit={**_COUNT, "description": "How many lines to read at most."},
)
LIST = _schema(
    "list",
    "List a folder of the workspace; directories end in a slash.",
    [],
    path={**_PATH, "description": "The folder; the workspace itself by default."},
    depth={**_COUNT, "maximum": 8, "description": "How many levels to show; 1 by default."},
)
SEARCH = _schema(
    "search",
    "Search the files of the workspace for lines that match a regular expression.",
    ["pattern"],
    pattern={"type": "string", "description": "A Python regular expression."},
    path={**_PATH, "description": "Where to search; the whole workspace by default."},
    glob={"type": "string", "description": "Search only files of this name pattern, such as *.py."},
)
WRITE = _schema(
    "write",
    "Write a whole file of the workspace; it is created or replaced.",
    ["file_path", "content"],
    file_path=_PATH,
    content={"type": "string"},
)
EDIT = _schema(
    "edit",
    "Replace one text in a file of the workspace; it must occur exactly once.",
    ["file_path", "old", "new"],
    file_path=_PATH,
    old={"type": "string", "minLength": 1},
    new={"type": "string"},
)
SHELL = _schema(
    "shell",
    "Run a command with /bin/sh in the workspace.",
    ["command"],
    command={"type": "string"},
    timeout={"type": "number", "exclusiveMinimum": 0, "maximum": 600, "description": "Seconds; 60 by default."},
)


@define(kw_only=True)
class Config:
    """Settings of the workspace plugin."""

    root: str | None = None
    """The folder; relative to the agent's working directory, which is the default."""
    write: bool = False
    """Also offer `write` and `edit`."""
    shell: bool = False
    """Also offer `shell`, and the Shell service to other plugins."""
    max_result_bytes: int = field(default=65_536, validator=validators.ge(256))
    """A result is cut to this many bytes of UTF-8, with a notice."""


class Workspace:
    """Tools that read (and, where allowed, change) one folder."""

    name = "workspace"
    Config = Config

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        config: Config = ctx.config
        tools: list[tuple[ToolSchema, Callable[..., str], bool]] = [
            (READ, _files.read, True),
            (LIST, _list, True),
            (SEARCH, _search, True),
        ]
        if config.write:
            tools += [(WRITE, _files.write, False), (EDIT, _files.edit, False)]
        for schema, function, parallel_safe in tools:
            ctx.tools.register(schema, _handler(config, function), parallel_safe=parallel_safe)
        ctx.services.provide(FileSystem, LocalFiles())  # type: ignore[type-abstract]
        if config.shell:
            shell = LocalShell()
            ctx.services.provide(Shell, shell)  # type: ignore[type-abstract]
            ctx.tools.register(SHELL, _shell_handler(config, shell))
        ctx.prompt.section(
            "workspace:how",
            "Look at the workspace's files with your tools before you answer questions about them. "
            "Paths are relative to the workspace.",
            order=GUIDANCE_ORDER,
            tools=["read", "list", "search"],
        )


def _list(root: Path, path: str = ".", depth: int = 1) -> str:
    return _files.list_folder(root, path, depth)


def _search(root: Path, pattern: str, path: str = ".", glob: str = "*") -> str:
    return _files.search(root, pattern, path, glob)


_ARGUMENTS = {"file_path": "named"}


def _root(config: Config, call: ToolCall) -> Path:
    base = Path(call.cwd or ".").absolute()
    return base / config.root if config.root is not None else base


def _handler(config: Config, function: Callable[..., str]) -> Callable[[ToolCall], Any]:
    async def handle(call: ToolCall) -> ToolOutcome:
        arguments = {_ARGUMENTS.get(str(name), str(name)): value for name, value in call.arguments.items()}
        try:
            text = await anyio.to_thread.run_sync(lambda: function(_root(config, call), **arguments))
        except PathRefusedError as refused:
            return ToolOutcome(content=str(refused), error="refused")
        except OSError as error:
            return ToolOutcome(content=f"{call.name} failed: {error.strerror or type(error).__name__}.", error="io")
        return ToolOutcome(content=_bounded(text, config.max_result_bytes))

    return handle


def _shell_handler(config: Config, shell: LocalShell) -> Callable[[ToolCall], Any]:
    async def handle(call: ToolCall) -> ToolOutcome:
        root = resolve(_root(config, call), ".")
        timeout = float(call.arguments.get("timeout", 60))
        result = await shell.run(call.arguments["command"], cwd=str(root), timeout=timeout)
        parts = [result.stdout, f"[stderr]\n{result.stderr}" if result.stderr else ""]
        ended = "was stopped" if result.exit_code is None else f"ended with exit code {result.exit_code}"
        text = "\n".join([part.rstrip("\n") for part in parts if part] + [f"[the command {ended}]"])
        error = None if result.exit_code == 0 else "stopped" if result.exit_code is None else "exit"
        return ToolOutcome(content=_bounded(text, config.max_result_bytes), error=error)

    return handle


def _bounded(text: str, limit: int) -> str:
    data = text.encode("utf-8", errors="replace")
    if len(data) <= limit:
        return text
    return f"{data[:limit].decode('utf-8', errors='ignore')}\n[{len(data) - limit} more bytes are left out]"
