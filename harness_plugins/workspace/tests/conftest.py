"""A workspace with everything in it that is awkward, and a secret beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SECRET = "the secret of the neighbours"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    inside = tmp_path / "work"
    (inside / "src").mkdir(parents=True)
    (inside / ".git").mkdir()
    (inside / ".git" / "config").write_text("needle")
    (inside / "README.md").write_text("# Title\nneedle here\n")
    (inside / "src" / "a.py").write_text("import os\nneedle = 1\n")
    (inside / "binary").write_bytes(b"\x00\x01needle")
    (inside / "latin").write_bytes(b"caf\xe9 needle")
    (inside / "empty").touch()
    os.symlink(outside / "secret", inside / "leak")
    os.symlink(outside, inside / "leakdir")
    os.symlink("README.md", inside / "alias")
    os.symlink("src", inside / "sources")
    os.symlink("loop", inside / "loop")
    os.symlink("nowhere", inside / "dangling")
    os.mkfifo(inside / "fifo")
    return inside
