"""The sessions that a host may offer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from harness_session_reference import Reference, ReferenceProblem, SessionReferenceError
from harness_session_reference.candidates import ranked
from harness_session_reference.mentions import scan

from harness_core.session import FileStore, MemoryStore, SessionSummary, StoredLog

pytestmark = pytest.mark.anyio


def summary(session_id: str, cwd: str = "/here", at: int = 0, title: str = "") -> SessionSummary:
    return SessionSummary(id=session_id, cwd=cwd, created_at_ms=0, last_at_ms=at, title=title)


SESSIONS = [
    summary("elsewhere new", "/else", 9),
    summary("nowhere old", "", 1),
    summary("same old", "/here", 1),
    summary("elsewhere old", "/else", 1),
    summary("same new", "/here", 5),
    summary("nowhere new", "", 8),
    summary("me", "/here", 99),
]


def ids(cwd: str | None, query: str = "", limit: int = 50) -> list[str]:
    return [each.id for each in ranked(SESSIONS, "me", cwd, query, limit)]


@pytest.mark.spec("SREF-32")
def test_the_same_directory_comes_first_then_none_then_the_others() -> None:
    assert ids("/here") == [
        "same new",
        "same old",
        "nowhere new",
        "nowhere old",
        "elsewhere new",
        "elsewhere old",
    ]


@pytest.mark.spec("SREF-33")
@pytest.mark.parametrize("cwd", [None, ""])
def test_without_a_directory_those_without_come_first(cwd: str | None) -> None:
    assert ids(cwd) == ["nowhere new", "nowhere old", "elsewhere new", "same new", "elsewhere old", "same old"]


def test_a_query_is_looked_for_in_ids_directories_and_titles() -> None:
    assert ids("/here", "NEW") == ["same new", "nowhere new", "elsewhere new"]
    assert ids("/here", "/else") == ["elsewhere new", "elsewhere old"]
    titled = [summary("a", title="Straße"), summary("b", title="else")]
    assert [each.id for each in ranked(titled, None, None, "STRASSE", 9)] == ["a"]
    assert ids("/here", "", 2) == ["same new", "same old"]


@pytest.mark.spec("SREF-34")
async def test_a_session_without_a_title_is_called_by_its_id(stage: Any, tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    async with stage(store=store) as it:
        it.past("a").user("What is\nthe matter?")
        it.past("b")
        it.past("c").user("damaged")
        log = store.path("c").read_bytes().split(b"\n")
        store.path("c").write_bytes(b"\n".join([log[0], b"\xff\xfe not json", *log[1:]]).replace(b"damaged", b"\xff"))
        store.path("d").write_bytes(b"not a log\n")
        found = await it.service.candidates(it.agent)
        assert sorted((each.id, each.label) for each in found) == [("a", "What is the matter?"), ("b", "b"), ("c", "c")]


async def test_a_candidate_brings_its_mention(stage: Any) -> None:
    async with stage() as it:
        it.past("a").user("[x] \\ y")
        (found,) = await it.service.candidates(it.session)
        assert scan(found.mention).references == (Reference("a", "[x] \\ y"),)
        assert (found.cwd, found.label) == ("/there", "[x] \\ y")


async def test_the_limit_is_the_setting_or_what_is_asked_for(stage: Any) -> None:
    async with stage(candidate_limit=2) as it:
        for name in "abc":
            it.past(name)
        assert len(await it.service.candidates(it.agent)) == 2
        assert len(await it.service.candidates(None, limit=9)) == 4
        for limit in (0, -1, 1.5, "2", True):
            with pytest.raises(SessionReferenceError) as error:
                await it.service.candidates(it.agent, limit=limit)
            assert error.value.problem is ReferenceProblem.INVALID_REFERENCE


async def test_listing_is_given_up_when_told(stage: Any) -> None:
    begun, free = threading.Semaphore(0), threading.Event()

    class Held(MemoryStore):
        def heads(self) -> Sequence[StoredLog]:
            begun.release()
            free.wait()
            return ()

    async with stage(store=Held()) as it:
        signal = anyio.Event()

        async def set_it() -> None:
            await anyio.to_thread.run_sync(begun.acquire)
            signal.set()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(set_it)
                with pytest.raises(SessionReferenceError) as error:
                    await it.service.candidates(it.agent, signal=signal)
            assert error.value.problem is ReferenceProblem.CANCELLED
        finally:
            free.set()
