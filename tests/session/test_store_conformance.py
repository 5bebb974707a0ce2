"""Both stores that come with the core fulfil the contract of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_core.session import FileStore, MemoryStore
from harness_core.testing.store_conformance import StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestFileStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return FileStore(tmp_path / "made" / "when needed")

    @pytest.fixture
    def again(self, store: FileStore) -> FileStore:
        return FileStore(store.folder)
