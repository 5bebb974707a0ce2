"""The workspace's tools: what they show, and that they never leave the root."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from harness_workspace import Workspace, _files
from harness_workspace._paths import PathRefusedError, open_file, resolve
from harness_workspace._services import LocalFiles, LocalShell

from harness_core import FileSystem, Harness, Shell
from harness_core.errors import PluginConfigError


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    inside = tmp_path / "work"
    (inside / "src").mkdir(parents=True)
    (inside / ".git").mkdir()
    (inside / ".git" / "config").write_text("needle")
    (inside / "README.md").write_text("# Title\nneedle here\n")
    (inside / "src" / "a.py").write_text("import os\nneedle = 1\n")
    (inside / "binary").write_bytes(b"\x00\x01needle")
    (inside / "latin").write_bytes(b"caf\xe9 needle")
    os.symlink(outside / "secret", inside / "leak")
    os.symlink(outside, inside / "leakdir")
    os.symlink("README.md", inside / "alias")
    os.symlink("loop", inside / "loop")
    os.mkfifo(inside / "fifo")
    yield inside


def test_reading_numbers_lines_and_pages(root: Path) -> None:
    assert _files.read(root, "README.md") == "    1  # Title\n    2  needle here"
    assert _files.read(root, "README.md", offset=1, limit=1).endswith("[1 more lines; read on with offset 2]")
    assert "nothing from line 9" in _files.read(root, "README.md", offset=9)
    assert _files.read(root, str(root / "alias")) == _files.read(root, "README.md")
    assert "caf\ufffd" in _files.read(root, "latin")


@pytest.mark.parametrize(
    "named",
    ["../outside/secret", "leak", "leakdir/secret", "/etc/passwd", "src/../../outside/secret", "", "  ", "a\0b"],
)
def test_nothing_outside_the_root_is_read_or_written(root: Path, named: str) -> None:
    with pytest.raises(PathRefusedError) as caught:
        _files.read(root, named)
    assert "secret" not in str(caught.value).replace(named, "")
    with pytest.raises(PathRefusedError):
        _files.write(root, named, "x")
    with pytest.raises(PathRefusedError):
        _files.search(root, "secret", named)
    assert (root.parent / "outside" / "secret").read_text() == "secret"


@pytest.mark.parametrize("named", ["fifo", "src", "binary"])
def test_what_is_no_text_file_is_refused_without_waiting(root: Path, named: str) -> None:
    finished = threading.Event()

    def attempt() -> None:
        with pytest.raises(PathRefusedError):
            _files.read(root, named)
        finished.set()

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    assert finished.wait(10)


def test_a_link_loop_is_refused(root: Path) -> None:
    with pytest.raises((PathRefusedError, OSError)):
        _files.read(root, "loop")


def test_a_folder_swapped_for_a_link_after_resolving_is_not_followed(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "secret").write_text("mine")
    real = resolve(root, "sub/secret")
    os.rename(root / "sub", root / "moved")
    os.symlink(root.parent / "outside", root / "sub")
    with pytest.raises((PathRefusedError, OSError)):
        os.close(open_file(root, real))


def test_listing_shows_folders_first_and_does_not_enter_skipped_ones(root: Path) -> None:
    lines = _files.list_folder(root, depth=2).splitlines()
    assert lines[:3] == [".git/", "src/", "  a.py"]
    assert "alias@" in lines
    assert "  config" not in lines


def test_searching_names_file_line_and_text(root: Path) -> None:
    found = _files.search(root, "needle").splitlines()
    assert "README.md:2: needle here" in found
    assert "src/a.py:2: needle = 1" in found
    assert not any(line.startswith((".git", "binary", "alias")) for line in found)
    assert _files.search(root, "needle", glob="*.py") == "src/a.py:2: needle = 1"
    assert _files.search(root, "absent") == "No matches."
    with pytest.raises(PathRefusedError, match="regular expression"):
        _files.search(root, "(")


def test_writing_and_editing_change_exactly_the_named_file(root: Path) -> None:
    _files.write(root, "new/deep/file.txt", "héllo")
    assert (root / "new/deep/file.txt").read_text() == "héllo"
    _files.edit(root, "new/deep/file.txt", "héllo", "bye")
    assert (root / "new/deep/file.txt").read_text() == "bye"
    with pytest.raises(PathRefusedError, match="0 times"):
        _files.edit(root, "new/deep/file.txt", "absent", "x")
    _files.write(root, "twice", "a a")
    with pytest.raises(PathRefusedError, match="2 times"):
        _files.edit(root, "twice", "a", "b")
    assert sorted(os.listdir(root / "new/deep")) == ["file.txt"]


@pytest.mark.anyio
async def test_tools_follow_the_configuration() -> None:
    async with Harness(autoload=False) as harness:
        activation = await harness.install(Workspace)
        assert [tool.name for tool in (await harness.assemble()).tools] == ["list", "read", "search"]
        assert harness.services.find(harness.root, FileSystem) is not None  # type: ignore[type-abstract]
        assert harness.services.find(harness.root, Shell) is None  # type: ignore[type-abstract]
        await activation.aclose()
        assert (await harness.assemble()).tools == []
        await harness.install(Workspace, config={"write": True, "shell": True})
        names = [tool.name for tool in (await harness.assemble()).tools]
        assert names == ["edit", "list", "read", "search", "shell", "write"]
        with pytest.raises(PluginConfigError, match="max_result_bytes"):
            await harness.install(Workspace, config={"max_result_bytes": 1}, scope=harness.root.child("x"))


@pytest.mark.anyio
async def test_the_shell_reports_how_a_command_ended_and_kills_the_whole_group(root: Path) -> None:
    shell = LocalShell(str(root))
    done = await shell.run("printf out; printf err >&2; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out", "err")
    marker = root / "marker"
    stopped = await shell.run(f"(sleep 600; touch {marker}) & echo $!; wait", timeout=0.5)
    assert stopped.exit_code is None
    child = int(stopped.stdout)
    with anyio.fail_after(10):
        while os.path.exists(f"/proc/{child}") and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2]:
            await anyio.sleep(0.01)


@pytest.mark.anyio
async def test_the_file_service_tells_absent_from_unreadable(root: Path) -> None:
    files = LocalFiles()
    info = await files.info(str(root / "README.md"))
    assert info is not None
    assert (info.kind, info.size) == ("file", 20)
    assert await files.info(str(root / "absent")) is None
    assert await files.info(str(root / "README.md" / "below")) is None
    with pytest.raises(OSError):
        await files.info(str(root / "loop"))
    assert (await files.read(str(root / "README.md"), 7)) == b"# Title"
    with pytest.raises(OSError):
        await files.read(str(root / "fifo"), 7)
    assert "src" in await files.children(str(root))
