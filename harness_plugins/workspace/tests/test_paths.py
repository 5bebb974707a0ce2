"""Nothing leads out of a workspace: no name, no link, no link that appears at the wrong moment."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from harness_workspace._paths import PathRefusedError, Place, resolve, visible
from harness_workspace._reading import list_folder, read
from harness_workspace._searching import search
from harness_workspace._writing import edit, write
from hypothesis import given, strategies as st

SECRET = "the secret of the neighbours"


@pytest.mark.parametrize(
    "named",
    [
        "../outside/secret",
        "leak",
        "leakdir/secret",
        "leakdir",
        "..",
        "/etc/passwd",
        "/",
        "src/../../outside/secret",
        "sources/../../outside/secret",
        "../work2",
        "",
        "  ",
        "a\0b",
        "\ud800",
    ],
)
def test_nothing_outside_the_root_is_read_or_written(root: Path, named: str) -> None:
    (root.parent / "work2").mkdir()  # begins like the root, and is another folder
    attempts: list[Callable[[], str]] = [
        lambda: read(root, named),
        lambda: list_folder(root, named),
        lambda: search(root, "secret", named),
        lambda: write(root, named, "x"),
        lambda: edit(root, named, "secret", "x"),
        lambda: write(root, f"{named}/new", "x") if named.strip() else write(root, named, "x"),
    ]
    for attempt in attempts:
        with pytest.raises(PathRefusedError) as caught:
            attempt()
        assert SECRET not in str(caught.value)
        assert str(root.parent) not in str(caught.value)
    assert (root.parent / "outside" / "secret").read_text() == SECRET
    assert os.listdir(root.parent / "outside") == ["secret"]


def test_links_that_lead_inside_are_followed(root: Path) -> None:
    assert read(root, "alias") == read(root, "README.md")
    assert read(root, "sources/a.py") == read(root, "src/a.py")
    assert read(root, str(root / "alias")) == read(root, "README.md")
    write(root, "alias", "through the link\n")
    assert (root / "README.md").read_text() == "through the link\n"
    assert (root / "alias").is_symlink()


def test_a_root_that_is_a_link_is_a_root(root: Path) -> None:
    os.symlink(root, root.parent / "link")
    assert read(root.parent / "link", "README.md") == read(root, "README.md")
    assert read(root.parent / "link", str(root / "README.md")) == read(root, "README.md")


def test_a_root_that_does_not_exist_is_said_to_be_missing(root: Path) -> None:
    with pytest.raises(PathRefusedError, match="workspace cannot be used: No such file"):
        read(root / "absent", "x")


def test_a_link_loop_is_refused(root: Path) -> None:
    for attempt in (lambda: read(root, "loop"), lambda: write(root, "loop", "x"), lambda: list_folder(root, "loop")):
        with pytest.raises((PathRefusedError, OSError)):
            attempt()
    assert (root / "loop").is_symlink()


@pytest.mark.parametrize("named", ["fifo", "socket", "src", "."])
def test_what_is_no_file_is_refused_without_waiting(root: Path, named: str) -> None:
    listening = socket.socket(socket.AF_UNIX)
    os.chdir(root)  # the name of a socket must be short
    listening.bind("socket")
    finished = threading.Event()

    def attempt() -> None:
        for act in (lambda: read(root, named), lambda: write(root, named, "x"), lambda: edit(root, named, "a", "b")):
            with pytest.raises(PathRefusedError):
                act()
        finished.set()

    with listening:
        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()
        assert finished.wait(10)


@pytest.mark.parametrize("part", ["sub", "sub/deep"])
def test_a_folder_swapped_for_a_link_after_resolving_is_not_followed(root: Path, part: str) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "deep" / "secret").write_text("mine")
    place = resolve(root, "sub/deep/secret")
    os.rename(root / part, root / "moved")
    target = root.parent / "outside"
    (target / "deep").mkdir()
    (target / "deep" / "secret").write_text(SECRET)
    os.symlink(target, root / part)
    with pytest.raises(PathRefusedError):
        place.open()
    with pytest.raises(PathRefusedError), place.beside(create=True):
        pass
    with pytest.raises((PathRefusedError, FileNotFoundError)):
        Place(place.root, place.parts[:-1]).entries()


def test_a_file_swapped_for_a_link_after_resolving_is_not_followed(root: Path) -> None:
    place = resolve(root, "README.md")
    os.unlink(root / "README.md")
    os.symlink(root.parent / "outside" / "secret", root / "README.md")
    with pytest.raises(PathRefusedError):
        place.open()


def test_whoever_swaps_folders_for_links_all_the_time_gains_nothing(root: Path) -> None:
    (root / "spot").mkdir()
    (root / "spot" / "secret").write_text("mine")
    os.symlink(root.parent / "outside", root / "trap")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "spot", root / "aside")
            os.rename(root / "trap", root / "spot")
            os.rename(root / "spot", root / "trap")
            os.rename(root / "aside", root / "spot")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        got = set()
        for _ in range(400):
            for act in (lambda: read(root, "spot/secret"), lambda: search(root, "mine|secret", "spot")):
                try:
                    got.add(act())
                except (PathRefusedError, OSError) as error:
                    got.add(type(error).__name__)
    finally:
        stop.set()
        swapper.join()
    assert not any(SECRET in each for each in got)
    assert "    1  mine" in got  # the inside was there often enough to be read


NAMES = [
    "..",
    ".",
    "src",
    "a.py",
    "leak",
    "leakdir",
    "secret",
    "sources",
    "alias",
    "loop",
    "README.md",
    "",
    "new",
    "outside",
]


def tree(folder: Path) -> Path:
    (folder / "outside").mkdir()
    (folder / "outside" / "secret").write_text(SECRET)
    inside = folder / "work"
    (inside / "src").mkdir(parents=True)
    (inside / "src" / "a.py").write_text("inside")
    (inside / "README.md").write_text("inside")
    for name, target in {
        "leak": folder / "outside" / "secret",
        "leakdir": folder / "outside",
        "sources": "src",
        "alias": "README.md",
        "loop": "loop",
        "src/up": "..",
    }.items():
        os.symlink(target, inside / name)
    return inside


@given(parts=st.lists(st.sampled_from([*NAMES, "up", "work"]), max_size=8), absolute=st.booleans())
def test_whatever_is_named_stays_inside(
    parts: list[str], absolute: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = shared_tree(tmp_path_factory)
    named = os.path.join(str(root), *parts) if absolute else "/".join(parts)
    try:
        place = resolve(root, named)
    except PathRefusedError:
        return
    assert Path(os.path.realpath(os.path.join(place.root, *place.parts))).is_relative_to(os.path.realpath(root))
    try:
        assert SECRET not in read(root, named)
    except (PathRefusedError, OSError):
        pass


_trees: list[Path] = []


def shared_tree(factory: pytest.TempPathFactory) -> Path:
    """One tree for all examples; they only look."""
    if not _trees:
        _trees.append(tree(factory.mktemp("tree")))
    return _trees[0]


def test_names_are_shown_in_printable_characters() -> None:
    assert visible("café.txt") == "café.txt"
    assert visible("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert visible(os.fsdecode(b"caf\xe9")) == "caf\\udce9"
