"""Which store keeps the sessions: the embedded ones, or one that another distribution offers (``harness.stores``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from harness_core._text import nearest, quoted_list
from harness_core.errors import CompositionError
from harness_core.host.discovery import PluginSource, discover
from harness_core.host.references import conceal
from harness_core.session import FileStore, MemoryStore, SessionStore

__all__ = ["STORE_GROUP", "StoreFactory", "open_store"]

STORE_GROUP = "harness.stores"

StoreFactory: TypeAlias = Callable[[Path, Mapping[str, Any]], SessionStore]
"""What an entry point of the group names: gets the sessions' folder and the store's own table, returns a store."""


def _file_store(folder: Path, config: Mapping[str, Any]) -> SessionStore:
    return FileStore(folder)


def _memory_store(folder: Path, config: Mapping[str, Any]) -> SessionStore:
    return MemoryStore()


_EMBEDDED: dict[str, StoreFactory] = {"file": _file_store, "memory": _memory_store}


def open_store(
    name: str,
    folder: Path,
    config: Mapping[str, Any],
    installed: Callable[[str], list[PluginSource]] = discover,
) -> SessionStore:
    """The store of that name.

    Raises:
        CompositionError: no distribution offers it, it could not be made, or what was made is no store.
    """
    embedded = _EMBEDDED.get(name)
    if embedded is not None:
        if config:
            raise CompositionError(
                f"The store {name!r} takes no configuration, but [session.config] holds {quoted_list(config)}.",
                remedy="Remove the table.",
                entry="session.config",
            )
        return embedded(folder, config)
    offered = {source.name: source for source in installed(STORE_GROUP)}
    source = offered.get(name)
    if source is None:
        known = [*_EMBEDDED, *offered]
        near = nearest(name, known)
        raise CompositionError(
            f"No installed distribution offers a session store called {name!r}.",
            remedy=f"Did you mean {near!r}?" if near else f"Known: {quoted_list(known)}.",
            entry="session.store",
            names=[name],
            known=known,
        )
    factory = source.imported()
    try:
        store = factory(folder, config)
    except Exception as error:
        failure = CompositionError(
            f"The session store of {source.label} could not be made: {type(error).__name__}: {error}.",
            entry="session.store",
            **source.facts(),
        )
        failure.__cause__ = error
        conceal(failure, config)
        raise failure  # noqa: B904 -- it has its cause
    if not isinstance(store, SessionStore):
        raise CompositionError(
            f"{source.label} offers a {type(store).__name__} as session store, which is none.",
            remedy="Run harness_core.testing.store_conformance against it.",
            entry="session.store",
            **source.facts(),
        )
    return store
