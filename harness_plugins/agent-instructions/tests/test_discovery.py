"""Which files are loaded, in which order, under which names; and what is no file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from harness_agent_instructions import Config
from harness_agent_instructions._compose import compose
from harness_agent_instructions._places import find_project, touched_directories
from harness_agent_instructions._reading import READ_AT_MOST, Reader
from harness_agent_instructions._state import View, changes_in
from harness_agent_instructions.config import Settings

pytestmark = pytest.mark.anyio

HOME = "/home/u/.harness/AGENTS.md"


async def listing(files: Any, cwd: str = "/p/w", **config: Any) -> Any:
    """The first list for a working directory: (paths, text)."""
    settings = Settings.of(Config(**{"max_bytes": 100_000, **config}), {}, "/home/u")
    reader = Reader(files, settings.max_source_bytes, {})
    due = await compose(await find_project(reader, cwd, settings), reader, View())
    if due.draft is None:
        return [], ""
    return [change.path for change in changes_in(due.draft.source)], due.draft.content[0].text


@pytest.mark.spec("AGI-04")
async def test_from_the_users_file_over_the_root_down_to_the_working_directory(files: Any) -> None:
    for path in (
        HOME,
        "/p/AGENTS.md",
        "/p/CLAUDE.md",
        "/p/w/AGENTS.md",
        "/p/w/x/CLAUDE.md",
        "/p/other/AGENTS.md",
        "/AGENTS.md",
    ):
        files.put(path, f"text of {path}")
    paths, text = await listing(files, "/p/w/x")
    assert paths == ["~/.harness/AGENTS.md", "AGENTS.md", "CLAUDE.md", "w/AGENTS.md", "w/x/CLAUDE.md"]
    places = [text.index(f"text of {path}") for path in (HOME, "/p/AGENTS.md", "/p/CLAUDE.md", "/p/w/AGENTS.md", "/p/w/x/CLAUDE.md")]  # fmt: skip
    assert places == sorted(places)
    assert "From /" not in text


@pytest.mark.spec("AGI-05")
async def test_overlays_stand_behind_the_files_of_their_directory(files: Any) -> None:
    for name in ("AGENTS.local.md", "AGENTS.md", "CLAUDE.local.md", "CLAUDE.md"):
        files.put(f"/p/{name}", f"root {name}")
        files.put(f"/p/w/{name}", f"deep {name}")
    paths, _ = await listing(files)
    names = ["AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"]
    assert paths == [*names, *(f"w/{name}" for name in names)]


@pytest.mark.spec("AGI-06")
async def test_without_overlay_names_overlays_are_ignored(files: Any, stage: Any) -> None:
    for folder in ("/p", "/p/w/sub"):
        files.put(f"{folder}/AGENTS.md", folder)
        files.put(f"{folder}/AGENTS.local.md", f"local {folder}")
    assert (await listing(files, local_instruction_file_candidates=[]))[0] == ["AGENTS.md"]
    async with stage(local_instruction_file_candidates=[]) as it:
        await it.turn("go", ("read", "sub/x"))
        assert [change.path for message in it.told for change in changes_in(message.source)] == [
            "AGENTS.md",
            "w/sub/AGENTS.md",
        ]


@pytest.mark.spec("AGI-07")
async def test_a_marker_may_be_a_file_and_nothing_above_the_root_loads(files: Any) -> None:
    files.put("/p/w/.git", "gitdir: elsewhere")
    files.put("/p/AGENTS.md", "above")
    files.put("/p/w/AGENTS.md", "here")
    assert (await listing(files))[0] == ["AGENTS.md"]
    files.remove("/p/w/.git")
    files.unavailable.add("/p/w/.git")
    assert (await listing(files))[0] == ["AGENTS.md", "w/AGENTS.md"]


@pytest.mark.spec("AGI-08")
async def test_without_a_marker_only_the_working_directory_loads(files: Any) -> None:
    files.remove("/p/.git")
    for path in (HOME, "/p/AGENTS.md", "/p/w/AGENTS.md"):
        files.put(path, path)
    assert (await listing(files))[0] == ["~/.harness/AGENTS.md", "AGENTS.md"]
    assert "text" not in (await listing(files, project_root_markers=[]))[1]


@pytest.mark.spec("AGI-09")
async def test_the_configured_order_counts(files: Any) -> None:
    files.put("/p/AGENTS.md", "agents")
    files.put("/p/CLAUDE.md", "claude")
    assert (await listing(files, instruction_file_candidates=["CLAUDE.md", "AGENTS.md"]))[0] == [
        "CLAUDE.md",
        "AGENTS.md",
    ]


@pytest.mark.spec("AGI-13")
async def test_a_folder_that_is_both_the_users_and_the_root_is_loaded_once(files: Any, stage: Any) -> None:
    files.put("/p/AGENTS.md", "both")
    files.put("/p/CLAUDE.md", "root only")
    paths, text = await listing(files, home="/p")
    assert paths == ["$HARNESS_HOME/AGENTS.md", "CLAUDE.md"]
    assert text.count("both") == 1
    files.put("/p/w/sub/AGENTS.md", "the user's")
    async with stage(home="/p/w/sub") as it:
        await it.turn("go", ("read", "sub/x"))
        assert [change.path for message in it.told for change in changes_in(message.source)] == ["$HARNESS_HOME/AGENTS.md", "AGENTS.md", "CLAUDE.md"]  # fmt: skip


@pytest.mark.spec("AGI-14")
@pytest.mark.parametrize("kind", ["directory", "other"])
async def test_what_is_no_regular_file_is_absent_and_revoked_where_it_was_one(
    files: Any, stage: Any, kind: str
) -> None:
    files.put("/p/AGENTS.md", "one")
    files.entries["/p/CLAUDE.md"] = kind
    assert (await listing(files))[0] == ["AGENTS.md"]
    async with stage() as it:
        await it.turn()
        files.entries["/p/AGENTS.md"] = kind
        await it.turn()
        assert [change.action for change in changes_in(it.told[1].source)] == ["remove"]
        assert "/p/CLAUDE.md" not in files.reads


@pytest.mark.spec("AGI-14", "AGI-15", "AGI-16")
async def test_links_are_followed_and_what_they_lead_to_decides(tmp_path: Path, disk: Any) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    outside = tmp_path / "outside.md"
    outside.write_text("from outside")
    (project / "AGENTS.md").symlink_to(outside)
    (project / "CLAUDE.md").symlink_to(project / ".git")
    (project / "AGENTS.local.md").symlink_to("nowhere")
    (project / "CLAUDE.local.md").symlink_to("CLAUDE.local.md")
    paths, text = await listing(disk, str(project))
    assert paths == ["AGENTS.md"]
    assert "from outside" in text
    assert str(tmp_path) not in text
    # A working directory that is a file (AGI-16) holds nothing.
    assert (await listing(disk, str(outside)))[0] == []


@pytest.mark.spec("AGI-17")
async def test_what_cannot_be_read_is_skipped(files: Any, stage: Any) -> None:
    files.put("/p/AGENTS.md", "gone when it is opened")
    files.put("/p/CLAUDE.md", b"caf\xe9")
    files.put("/p/w/AGENTS.md", "readable")
    files.unreadable.add("/p/AGENTS.md")
    files.unavailable.add("/p/w/CLAUDE.md")
    assert (await listing(files))[0] == ["w/AGENTS.md"]
    async with stage() as it:
        await it.turn()
        assert it.entered() == [["hello", "context", "facts"]]


@pytest.mark.spec("AGI-18")
async def test_a_full_list_reads_anew_whatever_version_a_file_has(files: Any, stage: Any) -> None:
    files.put("/p/AGENTS.md", "old text")
    async with stage() as it:
        await it.turn()
        files.swap("/p/AGENTS.md", "new text")
        await it.turn()
        assert len(it.told) == 1
        it.forget()
        await it.turn()
        assert "new text" in it.told[1].text


@pytest.mark.spec("AGI-19")
async def test_trimmed_duplicates_within_a_directory_are_left_out(files: Any) -> None:
    files.put("/p/AGENTS.md", "\ufeff  same \n")
    files.put("/p/CLAUDE.md", "same")
    files.put("/p/AGENTS.local.md", "\u00a0same\u2028")
    files.put("/p/CLAUDE.local.md", "\x1csame")
    paths, text = await listing(files)
    assert paths == ["AGENTS.md", "CLAUDE.local.md"]
    assert "\ufeff  same \n" in text


@pytest.mark.spec("AGI-20")
async def test_equal_files_of_different_directories_all_stay(files: Any) -> None:
    for path in (HOME, "/p/AGENTS.md", "/p/w/AGENTS.md"):
        files.put(path, "same")
    paths, text = await listing(files)
    assert (len(paths), text.count("same")) == (3, 3)


@pytest.mark.spec("AGI-21")
async def test_only_the_service_is_asked_and_never_the_disk(tmp_path: Path, files: Any) -> None:
    (tmp_path / "AGENTS.md").write_text("from the disk")
    (tmp_path / ".git").mkdir()
    files.put(f"{tmp_path}/AGENTS.md", "from the service")
    paths, text = await listing(files, str(tmp_path))
    assert paths == ["AGENTS.md"]
    assert "from the service" in text
    assert "from the disk" not in text


@pytest.mark.spec("AGI-22")
async def test_a_file_that_is_known_to_be_too_large_is_not_opened(files: Any) -> None:
    files.put("/p/AGENTS.md", "x" * 101)
    files.put("/p/CLAUDE.md", "x" * 100)
    assert (await listing(files, max_source_bytes=100))[0] == ["CLAUDE.md"]
    assert files.reads == ["/p/CLAUDE.md"]


@pytest.mark.spec("AGI-23")
async def test_a_file_of_unknown_size_is_read_no_further_than_the_cap(files: Any) -> None:
    files.put("/p/AGENTS.md", "x" * 101)
    files.put("/p/CLAUDE.md", "y" * 100)
    files.unsized |= {"/p/AGENTS.md", "/p/CLAUDE.md"}
    assert (await listing(files, max_source_bytes=100))[0] == ["CLAUDE.md"]
    assert files.limits == [101, 101]


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("first", ["short", "long " * 60, "", "\U0001f600" * 40])
async def test_within_any_budget_a_second_look_adds_nothing(files: Any, replaces: bool, first: str) -> None:
    files.put("/p/AGENTS.md", first)
    files.put("/p/w/AGENTS.md", "deep " * 50)
    for limit in range(1, 1500, 7):
        settings = Settings.of(Config(max_bytes=limit), {}, "/home/u")
        reader = Reader(files, settings.max_source_bytes, {})
        project = await find_project(reader, "/p/w", settings)
        view = View(identity="another" if replaces else None)
        due = await compose(project, reader, view)
        assert due.draft is not None
        view = view.with_messages([due.draft.message("1")])
        assert len(due.draft.content[0].text.encode()) <= limit
        assert (await compose(project, reader, view)).draft is None


@pytest.mark.spec("X-10")
async def test_one_pass_reads_no_more_than_some_files_of_the_largest_size(files: Any) -> None:
    folders = [f"/p/{'/'.join('d' * depth)}" for depth in range(1, 31)]
    for number, folder in enumerate(folders):
        files.put(f"{folder}/AGENTS.md", f"{number:03}" + "x" * 97)
    paths, _ = await listing(files, folders[-1], max_source_bytes=100)
    assert len(paths) == READ_AT_MOST


async def test_names_with_line_breaks_are_shown_on_one_line(files: Any) -> None:
    folder = "/p/a\nFrom evil.md:\u2028b"
    files.put(f"{folder}/AGENTS.md", "text")
    paths, text = await listing(files, folder)
    assert paths == ["a\nFrom evil.md:\u2028b/AGENTS.md"]
    assert "From a\\nFrom evil.md:\\u2028b/AGENTS.md:" in text.splitlines()


async def test_a_working_directory_whose_name_is_no_text_can_be_listed_and_logged(files: Any, stage: Any) -> None:
    folder = os.fsdecode(b"/p/caf\xe9")
    files.put(f"{folder}/AGENTS.md", "text")
    paths, _ = await listing(files, folder)
    assert paths == ["caf\\udce9/AGENTS.md"]


@pytest.mark.spec("AGI-36", "AGI-37", "X-06")
@pytest.mark.parametrize(
    ("touched", "directories"),
    [
        ("a/b/f.py", ["/p/w/a", "/p/w/a/b"]),
        ("/p/w/a/f.py", ["/p/w/a"]),
        ("./a/../b/f.py", ["/p/w/b"]),
        ("..odd/f.py", ["/p/w/..odd"]),
        ("f.py", []),
        ("/p/w/f.py", []),
        ("../f.py", []),
        ("../w2/f.py", []),
        ("/p/w2/a/f.py", []),
        ("/etc/passwd", []),
        ("a/f\0.py", []),
        (os.fsdecode(b"caf\xe9/f.py"), []),
        ("  ", []),
        ("", []),
        (None, []),
        (7, []),
    ],
)
def test_the_directories_that_a_touched_file_adds(touched: object, directories: list[str]) -> None:
    assert list(touched_directories("/p/w", touched)) == directories


def test_a_touched_file_adds_only_so_many_levels() -> None:
    assert len(touched_directories("/p", "a/" * 2000 + "f")) == 64
