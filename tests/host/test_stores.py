"""Session stores by name: the embedded ones, and those that other distributions offer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import CompositionError
from harness_core.host import PluginSource
from harness_core.host.stores import STORE_GROUP, open_store
from harness_core.session import FileStore, MemoryStore, SessionStore


def offering(factory: Any) -> Any:
    source = PluginSource(name="table", distribution="dist-table", version="3", entry_point="m:f", load=lambda: factory)

    def installed(group: str) -> list[PluginSource]:
        assert group == STORE_GROUP
        return [source]

    return installed


def test_embedded_stores_need_no_distribution(tmp_path: Path) -> None:
    store = open_store("file", tmp_path, {})
    assert isinstance(store, FileStore)
    assert store.folder == tmp_path
    assert isinstance(open_store("memory", tmp_path, {}), MemoryStore)
    with pytest.raises(CompositionError, match="takes no configuration"):
        open_store("file", tmp_path, {"x": 1})


def test_another_distributions_store_gets_folder_and_table(tmp_path: Path) -> None:
    got: list[Any] = []

    def factory(folder: Path, config: Mapping[str, Any]) -> SessionStore:
        got.append((folder, config))
        return MemoryStore()

    assert isinstance(open_store("table", tmp_path, {"rows": 3}, offering(factory)), MemoryStore)
    assert got == [(tmp_path, {"rows": 3})]


def test_an_unknown_store_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(CompositionError, match="Did you mean 'table'") as caught:
        open_store("tabel", tmp_path, {}, offering(None))
    assert caught.value.known == ("file", "memory", "table")


def test_a_store_that_fails_or_is_none_names_its_distribution(tmp_path: Path) -> None:
    def fails(folder: Path, config: Mapping[str, Any]) -> SessionStore:
        raise OSError("no table")

    for factory, says in ((fails, "no table"), (lambda folder, config: "store", "is none")):
        with pytest.raises(CompositionError, match=says) as caught:
            open_store("table", tmp_path, {}, offering(factory))
        assert (caught.value.distribution, caught.value.version) == ("dist-table", "3")
