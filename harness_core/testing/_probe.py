"""Runs in an interpreter of its own: what importing a plugin does to it, or what a plugin tells there.

``python -m harness_core.testing._probe import MODULE:NAME RESULT`` and ``... told FOLDER RESULT`` with a pickled subject on
standard input. The answer is a JSON document in the file RESULT, so that what a plugin prints is only printed.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any

from harness_core.testing._process import changed, process_state

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {
    "os.mkdir": "makes a folder",
    "os.rename": "renames a file",
    "os.remove": "removes a file",
    "os.rmdir": "removes a folder",
    "os.symlink": "makes a link",
    "os.link": "makes a link",
    "os.chmod": "changes a file's mode",
    "os.truncate": "shortens a file",
    "sqlite3.connect": "opens a database",
    "socket.__new__": "makes a socket",
    "socket.connect": "opens a connection",
    "socket.bind": "binds a socket",
    "socket.getaddrinfo": "looks up a host",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
}
"""Audit events of the interpreter, in words."""


class _Watch:
    """An audit hook cannot be taken away; this one can be switched off."""

    def __init__(self) -> None:
        self.on = False
        self.seen: dict[str, None] = {}
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open" and len(arguments) == 3 and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            if str(arguments[0]) != os.devnull:
                self.seen[f"writes a file: {arguments[0]}"] = None
        elif event in _EVENTS:
            about = arguments[0] if arguments and isinstance(arguments[0], (str, bytes, os.PathLike)) else ""
            self.seen[f"{_EVENTS[event]}{f': {os.fsdecode(about)}' if about else ''}"] = None


def probe_import(target: str) -> dict[str, Any]:
    """What importing an entry point does: effects in words, and the seconds that it takes when the core is there."""
    import harness_core.testing.contract  # noqa: F401 - brings the core, which is not the plugin's to pay for

    module, _, path = target.partition(":")
    watch = _Watch()
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        before = process_state()
        watch.on = True
        began = time.perf_counter()
        found: Any = import_module(module)
        for name in filter(None, path.split(".")):
            found = getattr(found, name)
        seconds = time.perf_counter() - began
        watch.on = False
        effects = [*watch.seen, *changed(before, process_state())]
    if printed.getvalue():
        effects.append(f"prints: {printed.getvalue().strip()[:200]}")
    return {"effects": effects, "seconds": seconds}


def probe_told(folder: str) -> dict[str, Any]:
    """What an agent is told with a plugin installed, lane by lane."""
    import anyio

    from harness_core.testing._scene import Subject, scene, subject_of

    name, config, beside = pickle.load(sys.stdin.buffer)

    async def read(subject: Subject) -> dict[str, Any]:
        async with scene(subject, folder) as here:
            await here.install()
            told = await here.told()
        return {lane: [[each.name, each.text, each.owner.plugin] for each in told[lane]] for lane in told.lanes}

    return anyio.run(read, subject_of(name, config=config, beside=beside))


if __name__ == "__main__":
    what, argument, result = sys.argv[1:]
    answer = probe_import(argument) if what == "import" else probe_told(argument)
    with open(result, "w", encoding="utf-8") as file:
        json.dump(answer, file)
