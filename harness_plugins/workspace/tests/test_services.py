"""The FileSystem service: what it says of paths, and how it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness_workspace._services import LocalFiles

pytestmark = pytest.mark.anyio


async def test_absent_is_told_from_unreadable(root: Path) -> None:
    files = LocalFiles()
    info = await files.info(str(root / "README.md"))
    assert info is not None
    assert (info.kind, info.size) == ("file", 20)
    folder = await files.info(str(root / "src"))
    assert folder is not None
    assert (folder.kind, folder.size) == ("directory", None)
    fifo = await files.info(str(root / "fifo"))
    assert fifo is not None
    assert fifo.kind == "other"
    assert await files.info(str(root / "absent")) is None
    assert await files.info(str(root / "README.md" / "below")) is None
    with pytest.raises(OSError, match="loop"):
        await files.info(str(root / "loop"))


async def test_the_version_changes_with_the_content(root: Path) -> None:
    files = LocalFiles()
    path = str(root / "README.md")
    first = await files.info(path)
    assert await files.info(path) == first
    stamp = os.stat(path)
    (root / "README.md").write_text("# Other\nneedle here\n")  # as long as before
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # and as old
    second = await files.info(path)
    assert first is not None
    assert second is not None
    assert second.version != first.version


async def test_many_paths_at_once_are_answered_like_each_alone(root: Path) -> None:
    files = LocalFiles()
    paths = [str(root / name) for name in ("README.md", "absent", "loop", "src", "a\0b")]
    found = await files.infos(paths)
    assert [found[0], found[1], found[3]] == [await files.info(paths[0]), None, await files.info(paths[3])]
    assert isinstance(found[2], OSError)
    assert isinstance(found[4], OSError)


async def test_reading_is_bounded_and_takes_only_files(root: Path) -> None:
    files = LocalFiles()
    assert await files.read(str(root / "README.md"), 7) == b"# Title"
    assert await files.read(str(root / "alias"), 100) == b"# Title\nneedle here\n"
    for name in ("fifo", "src", "absent", "a\0b", "\ud800"):
        with pytest.raises(OSError):
            await files.read(str(root / name), 7)


async def test_children_are_sorted_names(root: Path) -> None:
    files = LocalFiles()
    assert await files.children(str(root / "src")) == ["a.py"]
    names = await files.children(str(root))
    assert names == sorted(names)
    for name in ("README.md", "absent", "a\0b"):
        with pytest.raises(OSError):
            await files.children(str(root / name))
