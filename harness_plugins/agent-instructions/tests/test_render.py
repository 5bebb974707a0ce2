"""The block: every rung of the ladder, exact to the byte, and what it claims to tell."""

from __future__ import annotations

import pytest
from harness_agent_instructions import _texts as texts
from harness_agent_instructions._render import Block, Level, Part, cut, select, write
from hypothesis import given, strategies as st


def part(path: str, content: str = "") -> Part:
    lead = len(content[:1].encode())
    heading = texts.baseline_heading(path)
    return Part(path=path, heading=heading, size=len(content.encode()), lead=lead, content=content)


def block(*parts: Part, limit: int, remark: str = "") -> Block:
    return Block(intro=texts.INTRO, parts=parts, limit=limit, remark=remark)


THREE = (part("A.md", "alpha " * 40), part("b/A.md", "beta " * 40), part("b/c/A.md", "gamma " * 40))


def full_size(*parts: Part) -> int:
    text, _ = write(block(*parts, limit=10**6), select(block(*parts, limit=10**6)))
    return len(text.encode())


def test_all_files_stand_in_one_frame_with_their_bytes_untouched() -> None:
    text, told = write(block(*THREE, limit=10**6), select(block(*THREE, limit=10**6)))
    assert text.startswith(f"{texts.OPEN}\n{texts.INTRO}\n\nFrom A.md:\nalpha")
    assert text.endswith(f"{'gamma ' * 40}\n{texts.CLOSE}")
    assert told == (0, 1, 2)


def test_the_ladder_from_top_to_bottom() -> None:
    levels: list[Level] = []
    for limit in range(full_size(*THREE), -1, -1):
        chosen = select(block(*THREE, limit=limit))
        text, told = write(block(*THREE, limit=limit), chosen)
        assert len(text.encode()) <= limit
        if not levels or levels[-1] is not chosen.level:
            levels.append(chosen.level)
        match chosen.level:
            case Level.LAST_ONES:
                assert told == tuple(range(chosen.first, 3))
                assert all(f"From {THREE[place].path}:" not in text for place in range(chosen.first))
                assert all(THREE[place].path in text for place in range(3))
            case Level.CUT:
                kept = text.split("From b/c/A.md:\n")[1].removesuffix(f"\n{texts.CLOSE}")
                assert ("gamma " * 40).startswith(kept)
                assert kept
                assert f"first {len(kept)} of 240 bytes" in text
                assert told == (2,)
            case Level.HEADING | Level.NOTICE:
                assert told == ()
                assert texts.OPEN not in text
    assert levels == [Level.ALL, Level.LAST_ONES, Level.CUT, Level.HEADING, Level.NOTICE]


def test_the_broadest_are_left_out_first_and_named() -> None:
    limit = full_size(*THREE) - 1
    text, told = write(block(*THREE, limit=limit), select(block(*THREE, limit=limit)))
    assert told[-1] == 2
    assert "alpha" not in text
    assert "exceed" in text


def test_a_cut_is_as_long_as_can_be_and_takes_the_short_intro_when_nothing_else_fits() -> None:
    one = part("A.md", "x" * 5000)
    seen = set()
    for limit in range(full_size(one) - 1, 200, -1):
        chosen = select(block(one, limit=limit))
        if chosen.level is not Level.CUT:
            break
        seen.add(chosen.short)
        text, _ = write(block(one, limit=limit), chosen)
        # One byte more would need a number with one more digit, at worst.
        assert limit - 1 <= len(text.encode()) <= limit
        assert (texts.SHORT_INTRO in text) is chosen.short
    assert seen == {False, True}


def test_a_cut_shows_at_least_one_whole_character() -> None:
    one = part("A.md", "\U0001f600" * 300)
    for limit in range(full_size(one), 300, -1):
        chosen = select(block(one, limit=limit))
        text, told = write(block(one, limit=limit), chosen)
        assert bool(told) is ("\U0001f600" in text)
        assert len(text.encode()) <= limit


def test_a_heading_tells_only_of_what_has_no_content() -> None:
    empty, removal = part("e.md"), Part(path="r.md", heading=texts.removed_heading("r.md"))
    for last in (empty, removal, part("f.md", "text")):
        found = {}
        for limit in range(full_size(last), 0, -1):
            chosen = select(block(last, limit=limit))
            found.setdefault(chosen.level, write(block(last, limit=limit), chosen)[1])
        assert found[Level.HEADING] == (() if last.size else (0,))


def test_a_list_of_nothing_says_so_within_any_limit() -> None:
    nothing = Block(intro=texts.NONE_ACTIVE, parts=(), limit=10**6)
    assert write(nothing, select(nothing)) == (f"{texts.OPEN}\n{texts.NONE_ACTIVE}\n{texts.CLOSE}", ())
    short = Block(intro=texts.NONE_ACTIVE, parts=(), limit=7)
    assert write(short, select(short)) == (texts.NONE_ACTIVE[:7], ())


@pytest.mark.parametrize("limit", [0, 1, 20, 60, 200, 400, 700, 900, 5000])
def test_a_remark_and_the_room_kept_for_it_let_the_same_files_fit(limit: int) -> None:
    with_remark = Block(intro=texts.INTRO, parts=THREE, limit=limit, remark=texts.REPLACES)
    without = Block(intro=texts.INTRO, parts=THREE, limit=limit, spare=len(texts.REPLACES) + 1)
    assert select(with_remark) == select(without)
    if limit >= 60:
        assert texts.REPLACES in write(with_remark, select(with_remark))[0]


HOSTILE = st.sampled_from(
    [texts.CLOSE, "</ AGENT-instructions >", "< /agent-instructions", "é", "\U0001f600", "\n", "x"]
)


@given(
    contents=st.lists(st.lists(HOSTILE, max_size=30).map("".join), min_size=1, max_size=4),
    names=st.lists(HOSTILE, min_size=4, max_size=4),
    limit=st.integers(0, 2500),
    remark=st.sampled_from(["", texts.REPLACES]),
)
def test_whatever_is_in_it_a_block_keeps_its_limit_and_its_one_frame(
    contents: list[str], names: list[str], limit: int, remark: str
) -> None:
    parts = [part(f"d{place}/{names[place]}", content) for place, content in enumerate(contents)]
    given_block = block(*parts, limit=limit, remark=remark)
    chosen = select(given_block)
    text, told = write(given_block, chosen)
    assert len(text.encode()) <= limit
    assert "\ufffd" not in text
    framed = chosen.level in (Level.ALL, Level.LAST_ONES, Level.CUT)
    assert text.lower().replace(" ", "").count("</agent-instructions") == (1 if framed else 0)
    assert text.endswith(texts.CLOSE) is framed
    for place in told:
        heading = texts.baseline_heading(parts[place].path)
        assert heading in text
        if contents[place]:
            assert f"{heading}\n{texts.sealed(contents[place])[0]}" in text
    # What fits is decided without the text.
    blind = Block(intro=texts.INTRO, parts=tuple(Part(path=p.path, heading=p.heading, size=p.size, lead=p.lead) for p in parts), limit=limit, remark=remark)  # fmt: skip
    assert select(blind) == chosen


@given(st.text(max_size=50), st.integers(-1, 200))
def test_cutting_never_splits_a_character(text: str, size: int) -> None:
    piece = cut(text, size)
    assert text.startswith(piece)
    assert len(piece.encode()) <= max(size, 0)
    if len(piece) < len(text) and size >= 0:
        assert len(text[: len(piece) + 1].encode()) > size


def test_names_stay_on_one_line_and_cannot_close_the_frame() -> None:
    shown = texts.on_one_line(f"a\nb\u2028c\x1b[31m{texts.CLOSE}")
    assert shown.isprintable()
    assert texts.CLOSE not in shown
    assert texts.on_one_line("naïve/文.md") == "naïve/文.md"
