"""What a plugin may change in the process around it, read at two moments and compared. Changes nothing itself.

Imports nothing of the harness: it also runs in a fresh interpreter, before a plugin is imported there.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections import Counter
from typing import Any

__all__ = ["changed", "module_state", "process_state"]

_POOLED = ("AnyIO worker thread", "Trio thread", "asyncio_")
"""Threads of the event loop's own pools; they go with the loop."""


def process_state() -> dict[str, Any]:
    """By what it is called for people: everything that is shared by the whole process and easy to leave changed."""
    return {
        "threads": sorted(each.name for each in threading.enumerate() if not each.name.startswith(_POOLED)),
        "environment variables": dict(os.environ),
        "sys.path": list(sys.path),
        "sys.meta_path": [_kind(each) for each in sys.meta_path],
        "logging handlers": [_kind(each) for each in logging.getLogger().handlers],
        "the level of the root logger": logging.getLogger().level,
        "warning filters": [repr(each) for each in warnings.filters],
        "the current directory": _current_directory(),
        "sys.stdout and sys.stderr": [id(sys.stdout), id(sys.stderr)],
        "sys.excepthook": id(sys.excepthook),
        "signal handlers": {each.name: repr(signal.getsignal(each)) for each in signal.valid_signals() if _named(each)},
        "the umask": _umask(),
    }


def _named(number: object) -> bool:
    return isinstance(number, signal.Signals)


def _kind(value: object) -> str:
    return value.__qualname__ if isinstance(value, type) else type(value).__qualname__


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "gone"


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each thing that is otherwise. Values of variables are not shown: they may be secret."""
    found = []
    for name, old in before.items():
        new = after[name]
        if old == new:
            continue
        if isinstance(old, dict):
            names = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
            found.append(f"{name}: {', '.join(names)}")
        elif isinstance(old, list) and name != "sys.stdout and sys.stderr":
            more = [str(each) for each in (Counter(new) - Counter(old)).elements()]
            less = [str(each) for each in (Counter(old) - Counter(new)).elements()]
            parts = [f"new: {', '.join(more)}"] * bool(more) + [f"gone: {', '.join(less)}"] * bool(less)
            found.append(f"{name}: {'; '.join(parts) or 'in another order'}")
        else:
            found.append(f"{name}: changed")
    return found


_PLAIN = (bool, int, float, str, bytes, type(None), tuple, frozenset, list, dict, set, bytearray)
"""What is compared of modules and classes: values that can be seen through. Objects keep their state to themselves."""


def module_state(package: str) -> dict[str, str]:
    """By dotted name: the variables of a package's modules and of the classes that these define, as texts."""
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if name != package and not name.startswith(f"{package}."):
            continue
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == name:
                found |= {f"{name}.{value.__qualname__}.{own}": _text(each) for own, each in _variables(value)}
        found |= {f"{name}.{key}": _text(value) for key, value in _variables(module)}
    return found


def _variables(holder: object) -> list[tuple[str, object]]:
    return [(k, v) for k, v in list(vars(holder).items()) if type(v) in _PLAIN and not k.startswith("__")]


def _text(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # whatever it holds cannot be shown; it counts as the same
        return type(error).__name__
