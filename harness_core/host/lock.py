"""The lock: what the model gets in each scope, written to a file that people review, and what has changed since (no
surprise on upgrade).

Stable lanes are kept as they are rendered, with a digest; of volatile parts only names, orders and owners are kept, so
that they make no noise. A difference says lane, name, plugin and version, and whether it breaks a prefix cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs

from harness_core.errors import CompositionError
from harness_core.host.scope import Scope
from harness_core.models import ToolSchema
from harness_core.prompt import PromptAssembly, RenderedPart, render_parts
from harness_core.prompt.authors import Authors

if TYPE_CHECKING:
    from harness_core.host.harness import Harness

__all__ = ["LOCK_FILE", "Change", "differences", "lock_of", "read_lock", "write_lock"]

LOCK_FILE = "harness.lock.json"
FORMAT = 1

STABLE = ("sections", "tools")
"""The lanes whose bytes a provider's prefix cache depends on."""
LANES = (*STABLE, "contexts", "variables")


@attrs.frozen(kw_only=True)
class Change:
    """One difference between a lock and now."""

    scope: str
    lane: str
    name: str
    what: str
    """``"added"``, ``"removed"``, ``"changed"`` or ``"moved"``."""
    before: Any = None
    after: Any = None
    plugin: str | None = None
    version: str | None = None

    @property
    def breaks_prefix(self) -> bool:
        """Does the provider's cached prefix end here?"""
        return self.lane in STABLE

    def to_json(self) -> dict[str, Any]:
        facts = {name: value for name, value in attrs.asdict(self).items() if value is not None}
        return {**facts, "breaks_prefix": self.breaks_prefix}


async def lock_of(harness: Harness, scopes: Iterable[Scope]) -> dict[str, Any]:
    """What the model gets now, as plain data.

    Raises:
        HarnessError: something cannot be assembled or rendered; run the checks first.
    """
    plugins = sorted({(a.name, a.origin.distribution, a.origin.version) for a in harness.activations}, key=repr)
    return {
        "format": FORMAT,
        "plugins": [{"name": n, "distribution": d, "version": v} for n, d, v in plugins],
        "scopes": {scope.name: await _scope(harness, scope) for scope in scopes},
    }


async def _scope(harness: Harness, scope: Scope) -> dict[str, Any]:
    assembly = await harness.assemble(scope)
    owners = {
        (entry.kind, entry.name): entry.origin.plugin
        for entry in harness.prompt.entries(scope)
        if entry.kind in ("context", "variable")
    }
    sections = [
        {
            "name": part.name,
            "order": part.order,
            "plugin": _plugin(assembly, "sections", part),
            "text": part.text,
        }
        for part in render_parts(assembly)
    ]
    tools = [
        {"name": tool.name, "plugin": _plugin(assembly, "tools", tool), "schema": json.loads(tool.canonical)}
        for tool in assembly.tools
    ]
    return {
        "sections": sections,
        "tools": tools,
        "contexts": [
            {
                "name": context.name,
                "order": context.order,
                "plugin": owners.get(("context", context.name)),
                "volatile": True,
            }
            for context in assembly.contexts
        ],
        "variables": [
            {"name": name, "plugin": owners.get(("variable", name)), "volatile": True} for name in assembly.variables
        ],
        "digest": _digest({"sections": sections, "tools": tools}),
    }


def _plugin(assembly: PromptAssembly, lane: str, part: RenderedPart | ToolSchema) -> str | None:
    """Whose a part is: who registered it, or whose listener added it."""
    if part.origin is not None:
        return part.origin.plugin
    records = (each for each in getattr(assembly, lane) if each.name == part.name)
    author = Authors(assembly).of_record(lane, next(records, part))
    return author.origin.plugin if author is not None else None


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()[:32]


def write_lock(path: Path, lock: Mapping[str, Any]) -> None:
    """Write a lock so that a line of it is a line of a review.

    Raises:
        CompositionError: it cannot be written.
    """
    try:
        path.write_text(json.dumps(lock, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise CompositionError(
            f"The lock {path} cannot be written: {error.strerror}.", remedy="Name another file.", file=str(path)
        ) from None


def read_lock(path: Path) -> dict[str, Any]:
    """The lock in a file.

    Raises:
        CompositionError: there is none, it cannot be read, or another format of it.
    """
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        remedy = "Write one with: harness lock"
        raise CompositionError(f"There is no lock {path}.", remedy=remedy, file=str(path)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CompositionError(f"The lock {path} cannot be read: {error}.", file=str(path)) from None
    if not _is_lock(lock):
        raise CompositionError(
            f"{path} is no lock of format {FORMAT}.", remedy="Write it anew with: harness lock", file=str(path)
        )
    return lock


def _is_lock(lock: Any) -> TypeGuard[dict[str, Any]]:
    """Has it the shape of one? People merge it by hand."""
    if not isinstance(lock, dict) or lock.get("format") != FORMAT or not isinstance(lock.get("scopes"), dict):
        return False
    scopes = list(lock["scopes"].values())
    if not all(isinstance(scope, dict) for scope in scopes):
        return False
    entries = [lock.get("plugins"), *(scope.get(lane, []) for scope in scopes for lane in LANES)]
    return all(
        isinstance(several, list)
        and all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in several)
        for several in entries
    )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What changed from one lock to another: plugins first, then scope by scope, lane by lane."""
    changes = list(_plugins(before["plugins"], after["plugins"]))
    versions = {each["name"]: each.get("version") for each in after["plugins"]}
    for name in {**before["scopes"], **after["scopes"]}:
        old, new = before["scopes"].get(name), after["scopes"].get(name)
        for lane in LANES:
            changes += _lane(name, lane, (old or {}).get(lane, []), (new or {}).get(lane, []), versions)
    return changes


def _plugins(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[Change]:
    old = {each["name"]: each for each in before}
    new = {each["name"]: each for each in after}
    for name in {**old, **new}:
        was, now = old.get(name, {}).get("version"), new.get(name, {}).get("version")
        if name not in new:
            yield Change(scope="", lane="plugins", name=name, what="removed", before=was, plugin=name, version=was)
        elif name not in old:
            yield Change(scope="", lane="plugins", name=name, what="added", after=now, plugin=name, version=now)
        elif was != now:
            yield Change(
                scope="", lane="plugins", name=name, what="changed", before=was, after=now, plugin=name, version=now
            )


def _lane(
    scope: str, lane: str, before: list[dict[str, Any]], after: list[dict[str, Any]], versions: Mapping[str, str | None]
) -> Iterator[Change]:
    old = {each["name"]: each for each in before}
    new = {each["name"]: each for each in after}
    for name in {**old, **new}:
        was, now = old.get(name), new.get(name)
        plugin = (now or was or {}).get("plugin")
        facts: dict[str, Any] = {
            "scope": scope, "lane": lane, "name": name, "plugin": plugin, "version": versions.get(plugin or ""),
        }  # fmt: skip
        if now is None:
            yield Change(what="removed", before=_content(was), **facts)
        elif was is None:
            yield Change(what="added", after=_content(now), **facts)
        elif was != now:
            yield Change(what="changed", before=_content(was), after=_content(now), **facts)
    kept_before = [name for name in old if name in new]
    kept_after = [name for name in new if name in old]
    if kept_before != kept_after:
        first = next(b for a, b in zip(kept_before, kept_after, strict=True) if a != b)
        plugin = new[first].get("plugin")
        yield Change(
            scope=scope, lane=lane, name=first, what="moved", before=kept_before, after=kept_after, plugin=plugin,
            version=versions.get(plugin or ""),
        )  # fmt: skip


def _content(entry: Mapping[str, Any] | None) -> Any:
    if entry is None:
        return None
    return entry.get("text", entry.get("schema", {key: entry[key] for key in ("order", "plugin") if key in entry}))
