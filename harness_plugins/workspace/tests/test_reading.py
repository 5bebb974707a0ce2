"""Reading and listing: what is shown, what is left out, and that the reader is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness_workspace import _reading
from harness_workspace._paths import PathRefusedError
from harness_workspace._reading import list_folder, read
from hypothesis import given, strategies as st


def test_lines_have_numbers(root: Path) -> None:
    assert read(root, "README.md") == "    1  # Title\n    2  needle here"


def test_reading_goes_on_where_it_is_told(root: Path) -> None:
    assert read(root, "README.md", limit=1) == "    1  # Title\n[1 more lines; read on with offset 2]"
    assert read(root, "README.md", offset=2) == "    2  needle here"
    assert read(root, "README.md", offset=9) == "README.md has 2 lines; there is nothing from line 9 on."
    assert read(root, "empty") == "empty is empty."


def test_lines_are_those_of_an_editor(root: Path) -> None:
    (root / "odd").write_bytes("\ufeffone\r\ntwo\x0cstill two\u2028still two\n\nfour".encode())
    assert read(root, "odd").splitlines()[0] == "    1  one"
    assert read(root, "odd", offset=4) == "    4  four"


def test_binary_files_are_named_as_such(root: Path) -> None:
    with pytest.raises(PathRefusedError, match="'binary' is a binary file of 8 bytes"):
        read(root, "binary")


def test_bytes_that_are_no_utf8_are_replaced_and_said_to_be(root: Path) -> None:
    assert read(root, "latin") == "    1  caf\ufffd needle\n[bytes that are not UTF-8 are shown as \ufffd]"


def test_long_lines_are_cut(root: Path) -> None:
    (root / "min.js").write_text("x" * 5000 + "\nshort\n")
    assert read(root, "min.js") == f"    1  {'x' * 2000}\n    2  short\n[lines are cut after 2000 characters]"


def test_a_page_ends_with_a_whole_line_and_says_where_to_go_on(root: Path) -> None:
    (root / "long").write_text("".join(f"line {n} é\n" for n in range(1, 1001)))
    seen: list[str] = []
    offset = 1
    while offset:
        page = read(root, "long", offset=offset, budget=2000)
        assert len(page.encode()) <= 2000
        lines = page.splitlines()
        seen += [line[7:] for line in lines if not line.startswith("[")]
        offset = int(lines[-1].rpartition(" ")[2].rstrip("]")) if lines[-1].startswith("[") else 0
    assert seen == [f"line {n} é" for n in range(1, 1001)]


def test_a_line_that_is_longer_than_a_page_is_cut_and_does_not_stop_reading(root: Path) -> None:
    (root / "wide").write_text("é" * 1900 + "\nnext\n")
    page = read(root, "wide", budget=512)
    assert len(page.encode()) <= 512
    assert page.endswith("[the first line is cut]\n[1 more lines; read on with offset 2]")


def test_a_huge_file_is_read_in_its_beginning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "MAX_FILE_BYTES", 10)
    (root / "huge").write_text("éééééééé\n" * 3)
    page = read(root, "huge")
    assert page == "    1  ééééé\n[only the first 10 of 51 bytes can be read]"
    (root / "cut").write_text("xéééééééé\n")
    assert "\ufffd" not in read(root, "cut")  # the last character is cut in two, not damaged


@given(content=st.binary(max_size=300))
def test_whatever_a_file_holds_the_answer_is_text(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any", numbered=True)
    (folder / "file").write_bytes(content)
    try:
        read(folder, "file").encode("utf-8")
    except PathRefusedError as error:
        assert b"\0" in content
        assert "binary" in str(error)


def test_listing_shows_folders_first_and_marks_them_and_links(root: Path) -> None:
    assert list_folder(root).splitlines() == [
        ".git/",
        "src/",
        "README.md",
        "alias@",
        "binary",
        "dangling@",
        "empty",
        "fifo",
        "latin",
        "leak@",
        "leakdir@",
        "loop@",
        "sources@",
    ]


def test_listing_goes_as_deep_as_it_is_told_but_not_into_what_holds_no_sources(root: Path) -> None:
    (root / "src" / "deep").mkdir()
    (root / "src" / "deep" / "b.py").touch()
    assert list_folder(root, depth=2).splitlines()[:4] == [".git/", "src/", "  deep/", "  a.py"]
    assert "    b.py" in list_folder(root, depth=3).splitlines()
    assert list_folder(root, ".git") == "config"


def test_listing_an_empty_folder_and_a_file(root: Path) -> None:
    (root / "none").mkdir()
    assert list_folder(root, "none") == "(empty)"
    with pytest.raises(PathRefusedError, match="no folder"):
        list_folder(root, "README.md")
    with pytest.raises(FileNotFoundError):
        list_folder(root, "absent")


def test_a_list_is_bounded(root: Path) -> None:
    (root / "many").mkdir()
    for number in range(1200):
        (root / "many" / f"{number:04}").touch()
    lines = list_folder(root, "many").splitlines()
    assert (len(lines), lines[999]) == (1001, "0999")
    assert lines[-1] == "[more entries are left out; list a folder further down]"
    short = list_folder(root, "many", budget=600)
    assert len(short.encode()) <= 600
    assert short.endswith("further down]")


def test_names_that_are_no_text_are_shown_so_that_they_can_be_logged(root: Path) -> None:
    os.close(os.open(os.fsencode(root) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    (root / "line\nbreak").touch()
    lines = list_folder(root).splitlines()
    assert "caf\\udce9" in lines
    assert "line\\nbreak" in lines
