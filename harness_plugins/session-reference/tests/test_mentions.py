"""How mentions are written and found again."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from harness_session_reference import Reference, ReferenceProblem, SessionReferenceError, mention, mentions, uri
from harness_session_reference.mentions import SCHEME, scan, session_of
from hypothesis import given, strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def payload(data: bytes) -> str:
    return SCHEME + base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.spec("SREF-22")
@given(texts)
def test_every_id_has_one_uri_and_comes_back(session_id: str) -> None:
    assert session_of(uri(session_id)) == session_id


@pytest.mark.spec("SREF-22")
@pytest.mark.parametrize("session_id", ["ü/ñ", 'a"b', "a/b\\c", "line\nbreak", "", "\U0001f600", "a" * 5000])
def test_odd_ids_come_back_exactly(session_id: str) -> None:
    assert scan(f"see {mention(session_id, 'it')}.").references == (Reference(session_id, "it"),)


@given(texts, texts, texts, texts)
def test_a_mention_is_found_in_any_text(before: str, session_id: str, label: str, after: str) -> None:
    before, after = before.replace("@", ""), after.replace("@", "")
    found = scan(before + mention(session_id, label) + after)
    assert found.references == (Reference(session_id, label),)
    assert found.text == f"{before}@{label}{after}"


@pytest.mark.spec("SREF-23")
@pytest.mark.parametrize(
    ("text", "readable"),
    [
        (f"see {uri('a')}.", "see @a."),
        (f"`{uri('a')}`", "`@a`"),
        (f"({uri('a')})", "(@a)"),
        (f"{uri('a')}, {uri('b c')}!", "@a, @b c!"),
        (f"[a link]({uri('a')})", "[a link](@a)"),
        (f"`{mention('a', 'A')}`", "`@A`"),
        (f"{mention('a', 'A')}{mention('b', 'B')}", "@A@B"),
        (f"@[x {mention('a', 'A')}", "@x @[A"),
        (mention("a", "]\\["), "@]\\["),
    ],
)
def test_mentions_give_way_to_what_a_person_reads(text: str, readable: str) -> None:
    assert scan(text).text == readable


@pytest.mark.spec("SREF-24")
@pytest.mark.parametrize(
    "text",
    [
        SCHEME,
        f"{SCHEME} ",
        f"{SCHEME}%%%",
        f"x{uri('a')}",
        f"other-{uri('a')}",
        "@[a](https://example.org)",
        "@[a](mailto:someone)",
        "@[a",
        "@[a]",
        "@[a] (harness-session:)",
        uri("a").upper(),
        "",
    ],
)
def test_everything_else_is_text(text: str) -> None:
    found = scan(text)
    assert (found.text, found.references) == (text, ())


@pytest.mark.spec("SREF-25", "SREF-26", "SREF-27")
@pytest.mark.parametrize(
    "reference",
    [
        f"@[a]({SCHEME})",
        f"@[a]({SCHEME}%%%)",
        f"@[a]({SCHEME}ImEi x)",
        f"@[a]({uri('a')}=)",
        payload(b'"a" '),
        payload(b'"\\u0061"'),
        payload(b'{"id":"a"}'),
        payload(b"5"),
        payload(b"null"),
        payload(b'"a'),
        payload(b'"\xff"'),
        payload(b'"\\ud800"'),
        payload(b"[" * 100_000),
        uri("a") + "-",
        uri("a") + "A",
        f"{SCHEME}_",
    ],
)
def test_a_uri_in_any_other_spelling_is_refused(reference: str) -> None:
    with pytest.raises(SessionReferenceError) as error:
        scan(f"see {reference} there")
    assert error.value.problem is ReferenceProblem.INVALID_REFERENCE


def test_a_uri_of_a_lone_surrogate_cannot_be_made() -> None:
    for make in (uri, mention):
        with pytest.raises(SessionReferenceError):
            make("\ud800")


@given(st.lists(st.sampled_from(["@[", "]", "(", ")", "\\", SCHEME, uri("a"), "x", " ", "\n"]), max_size=20))
def test_a_text_is_taken_apart_without_loss(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        found = scan(text)
    except SessionReferenceError:
        return
    if not found.references:
        assert found.text == text
    assert all(reference.id == "a" for reference in found.references)
    assert found.text.count("@") >= len(found.references)


@pytest.mark.parametrize(
    "text",
    [
        f"{SCHEME} " + "@[" * 200_000,
        f"{SCHEME} " + "@[a\\" * 100_000,
        f"{SCHEME} " + "@[a]" * 100_000,
        f"@[a]({SCHEME} " * 50_000,
        "@[" * 100_000 + f"]({SCHEME} " * 50_000,
    ],
    ids=["open", "escaped", "closed", "unfinished", "both"],
)
def test_the_work_grows_with_the_text_and_no_faster(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts the characters that are looked at, not the time."""
    looked = 0

    class Text(str):
        def index(self, *arguments: Any) -> int:
            nonlocal looked
            found = super().index(*arguments)
            looked += found - arguments[1]
            return found

    class Labels:
        def match(self, text: str, place: int) -> Any:
            nonlocal looked
            found = label.match(text, place)
            looked += (found.end() if found else len(text)) - place
            assert looked <= 2 * len(text)
            return found

    label = mentions._LABEL
    monkeypatch.setattr(mentions, "_LABEL", Labels())
    assert scan(Text(text)).references == ()
    assert 0 < looked <= 2 * len(text)


def test_the_uri_is_the_json_of_the_id() -> None:
    data = uri("ü").removeprefix(SCHEME)
    assert json.loads(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))) == "ü"
