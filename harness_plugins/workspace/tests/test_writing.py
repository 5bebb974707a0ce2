"""Writing and editing: the named file changes as a whole, or nothing does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from harness_workspace import _writing
from harness_workspace._paths import PathRefusedError
from harness_workspace._writing import edit, write


def test_writing_makes_files_and_folders(root: Path) -> None:
    assert write(root, "new/deep/file.txt", "héllo") == "Wrote 6 bytes to new/deep/file.txt."
    assert (root / "new/deep/file.txt").read_text() == "héllo"
    assert os.listdir(root / "new/deep") == ["file.txt"]


def test_writing_through_a_dangling_link_makes_its_target(root: Path) -> None:
    write(root, "dangling", "found")
    assert (root / "nowhere").read_text() == "found"


def test_the_mode_of_a_file_stays(root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    write(root, "run.sh", "new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    umask = os.umask(0)
    os.umask(umask)
    write(root, "plain", "new")
    assert stat.S_IMODE((root / "plain").stat().st_mode) == 0o666 & ~umask


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is writable for root")
def test_a_read_only_file_is_refused(root: Path) -> None:
    (root / "README.md").chmod(0o444)
    with pytest.raises(PermissionError):
        write(root, "README.md", "new")


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(os.listdir(root))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_writing.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(root, "README.md", "new")
    assert (root / "README.md").read_text() == "# Title\nneedle here\n"
    assert sorted(os.listdir(root)) == before


@pytest.mark.parametrize("named", [".git/config", ".git/hooks/pre-commit", "src/.GIT/config", ".git"])
def test_what_belongs_to_git_is_not_changed(root: Path, named: str) -> None:
    with pytest.raises(PathRefusedError, match="belongs to git"):
        write(root, named, "x")
    assert (root / ".git" / "config").read_text() == "needle"
    assert os.listdir(root / ".git") == ["config"]


def test_folders_and_lone_surrogates_are_refused(root: Path) -> None:
    with pytest.raises(PathRefusedError, match="no regular file"):
        write(root, "src", "x")
    with pytest.raises(PathRefusedError, match="no folder"):
        write(root, "README.md/below", "x")
    with pytest.raises(PathRefusedError, match="lone surrogate"):
        write(root, "new", "\ud800")
    assert not (root / "new").exists()


def test_editing_replaces_the_one_occurrence(root: Path) -> None:
    assert edit(root, "src/a.py", "needle", "thread") == "Edited src/a.py."
    assert (root / "src/a.py").read_text() == "import os\nthread = 1\n"


def test_editing_keeps_every_other_byte(root: Path) -> None:
    (root / "dos").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    edit(root, "dos", "two", "2")
    assert (root / "dos").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\nthree"


@pytest.mark.parametrize(
    ("content", "old", "says"),
    [
        (b"a", "b", "0 times"),
        (b"a a", "a", "2 times"),
        (b"a", "", "0 times"),
        (b"one\r\ntwo", "one\ntwo", "carriage return"),
        (b"caf\xe9", "caf", "not UTF-8"),
        (b"\0a", "a", "binary"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(root: Path, content: bytes, old: str, says: str) -> None:
    (root / "file").write_bytes(content)
    with pytest.raises(PathRefusedError, match=says):
        edit(root, "file", old, "new")
    assert (root / "file").read_bytes() == content


def test_a_file_that_is_too_large_is_not_edited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_workspace._reading.MAX_FILE_BYTES", 4)
    with pytest.raises(PathRefusedError, match="too large"):
        edit(root, "README.md", "#", "x")
