"""The plugin: which tools are offered, their schemas, and the step from a call to a file."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread
from attrs import define, field, validators

from harness_core import FileSystem, PluginContext, Shell, ToolCall, ToolOutcome, ToolSchema, hookimpl
from harness_workspace._page import shortened
from harness_workspace._paths import PathRefusedError, resolve
from harness_workspace._reading import list_folder, read
from harness_workspace._searching import search
from harness_workspace._services import LocalFiles, LocalShell
from harness_workspace._shell import Finished
from harness_workspace._writing import edit, write

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
    pattern={"type": "string", "maxLength": 1000, "description": "A Python regular expression."},
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


SHELL_SECONDS = 60.0
"""How long a command may take that does not say."""


@define(kw_only=True)
class Config:
    """Settings of the workspace plugin."""

    root: str | None = None
    """The folder; relative to the agent's working directory, which is the default."""
    write: bool = False
    """Also offer `write` and `edit`."""
    shell: bool = False
    """Also offer `shell`, and the Shell service to other plugins."""
    services: bool = True
    """Offer the FileSystem and Shell services; off where the deployment provides its own."""
    max_result_bytes: int = field(default=48_000, validator=validators.ge(512))
    """A result is cut to this many bytes of UTF-8, and says so; agents cut results after 50,000 characters."""


class Workspace:
    """Tools that read (and, where allowed, change) one folder."""

    name = "workspace"
    Config = Config

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        config: Config = ctx.config
        reading: list[tuple[ToolSchema, Callable[..., str]]] = [(READ, read), (LIST, list_folder), (SEARCH, search)]
        for schema, function in reading:
            handler = _reading(config, function, stoppable=function is search)
            ctx.tools.register(schema, handler, parallel_safe=True)
        if config.write:
            ctx.tools.register(WRITE, _writing(config, write))
            ctx.tools.register(EDIT, _writing(config, edit))
        shell = LocalShell()
        if config.shell:
            ctx.tools.register(SHELL, _shell(config, shell))
        if config.services:
            ctx.services.provide(FileSystem, LocalFiles())  # type: ignore[type-abstract]
            if config.shell:
                ctx.services.provide(Shell, shell)  # type: ignore[type-abstract]
        ctx.prompt.section(
            "workspace:how",
            "Look at the workspace's files with your tools before you answer questions about them. "
            "Paths are relative to the workspace.",
            order=GUIDANCE_ORDER,
            tools=["read", "list", "search"],
        )


_PARAMETERS = {"file_path": "named", "path": "named"}
"""What tools call the place that functions call ``named``."""


def _root(config: Config, call: ToolCall) -> str:
    return os.path.abspath(os.path.join(call.cwd or ".", config.root or "."))


def _bound(config: Config, function: Callable[..., str], call: ToolCall, **more: Any) -> Callable[[], str]:
    arguments: dict[str, Any] = {_PARAMETERS.get(str(name), str(name)): value for name, value in call.arguments.items()}
    return functools.partial(function, _root(config, call), **arguments, **more)


async def _outcome(call: ToolCall, work: Callable[[], str], *, abandon: bool) -> ToolOutcome:
    try:
        return ToolOutcome(content=await anyio.to_thread.run_sync(work, abandon_on_cancel=abandon))
    except PathRefusedError as refused:
        return ToolOutcome(content=str(refused), error="refused")
    except OSError as error:
        return _io(call, error)


def _io(call: ToolCall, error: OSError) -> ToolOutcome:
    named = call.arguments.get("file_path", call.arguments.get("path"))
    place = f" for {named!r}" if named is not None else ""
    return ToolOutcome(content=f"{call.name} failed{place}: {error.strerror or type(error).__name__}.", error="io")


def _reading(config: Config, function: Callable[..., str], *, stoppable: bool) -> Callable[[ToolCall], Any]:
    async def handle(call: ToolCall) -> ToolOutcome:
        more = {"check": anyio.from_thread.check_cancelled} if stoppable else {}
        work = _bound(config, function, call, budget=config.max_result_bytes, **more)
        # A reader that is stuck on a dead network file system is left alone; it changes nothing.
        return await _outcome(call, work, abandon=not stoppable)

    return handle


def _writing(config: Config, function: Callable[..., str]) -> Callable[[ToolCall], Any]:
    async def handle(call: ToolCall) -> ToolOutcome:
        return await _outcome(call, _bound(config, function, call), abandon=False)

    return handle


def _shell(config: Config, shell: LocalShell) -> Callable[[ToolCall], Any]:
    async def handle(call: ToolCall) -> ToolOutcome:
        seconds = float(call.arguments.get("timeout", SHELL_SECONDS))
        try:
            root = resolve(_root(config, call), ".").root
            done = await shell.finished(call.arguments["command"], cwd=root, timeout=seconds)
        except PathRefusedError as refused:
            return ToolOutcome(content=str(refused), error="refused")
        except OSError as error:
            return _io(call, error)
        return _shown(done, seconds, config.max_result_bytes)

    return handle


def _shown(done: Finished, seconds: float, budget: int) -> ToolOutcome:
    error: str | None
    if done.ended_by == "timeout":
        end, error = f"the command was stopped after {seconds:g} seconds", "timeout"
    elif done.ended_by is not None:
        end, error = f"the command was ended by {done.ended_by}", "signal"
    else:
        end, error = f"the command ended with exit code {done.exit_code}", None if done.exit_code == 0 else "exit"
    parts = [done.stdout, f"[stderr]\n{done.stderr}" if done.stderr else ""]
    output = shortened("\n".join(part.rstrip("\n") for part in parts if part), budget - len(end) - 3)
    return ToolOutcome(content=f"{output}\n[{end}]" if output else f"[{end}]", error=error)
