"""Authorship: every character of a prompt belongs to somebody, and to the right one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness_core import Harness, Literal, Section, hookimpl, render_prompt
from harness_core.inspect import Writer, pieces, tracing
from harness_core.inspect.authorship import assigned
from harness_core.prompt import render_context_sections
from harness_core.prompt.spans import source_text, text_spans
from tests.inspect.conftest import Looked

A, B, C = Writer(plugin="a"), Writer(plugin="b"), Writer(plugin="c")


def stretches(text: str, owned: list[tuple[int, Writer]]) -> list[tuple[str, str]]:
    found, at = [], 0
    for end, writer in owned:
        found.append((text[at:end], writer.name))
        at = end
    return found


# --- rewriting --------------------------------------------------------------------------------------------------------


def test_what_a_listener_leaves_standing_stays_its_owners() -> None:
    before, after = "Be brief and kind.", "Be brief, honest and kind."
    assert stretches(after, assigned([(len(before), A)], before, after, B)) == [
        ("Be brief", "a"),
        (", honest", "b"),
        (" and kind.", "a"),
    ]


def test_a_second_rewriting_keeps_what_both_had_written() -> None:
    one, two, three = "red", "red green", "red green blue"
    owned = assigned([(len(one), A)], one, two, B)
    assert stretches(three, assigned(owned, two, three, C)) == [("red", "a"), (" green", "b"), (" blue", "c")]


def test_a_text_that_is_replaced_altogether_is_the_writers() -> None:
    assert stretches("quite new", assigned([(3, A)], "old", "quite new", B)) == [("quite new", "b")]


words = st.lists(st.sampled_from(["red ", "green ", "blue ", ", ", "\n"]), max_size=12).map("".join)


@given(words, words, words)
def test_every_character_has_exactly_one_owner_after_any_rewriting(one: str, two: str, three: str) -> None:
    owned = assigned([(len(one), A)] if one else [], one, two, B)
    owned = assigned(owned, two, three, C)
    ends = [end for end, _ in owned]
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == len(three)


# --- spans ------------------------------------------------------------------------------------------------------------

parts = st.one_of(
    st.sampled_from(["{{city}}", "text ", "{{mood}}, ", "", "}", "{ {"]),
    st.sampled_from(["{{not a reference}}", "data "]).map(Literal),
)


@given(st.lists(parts, min_size=1, max_size=6), st.booleans())
def test_spans_cover_the_rendered_text_and_point_into_the_source(texts: list[Any], interpolate: bool) -> None:
    from harness_core import PromptAssembly

    section = Section("s", tuple(texts), interpolate=interpolate)
    variables: dict[str, str | None] = {"city": "Rome", "mood": ""}
    rendered = render_prompt(PromptAssembly(sections=[section], variables=variables))
    spans = text_spans(section, variables)
    assert [span.start for span in spans] == [0, *(span.end for span in spans)][: len(spans)]
    assert (spans[-1].end if spans else 0) == len(rendered)
    source = source_text(section.text)
    for span in spans:
        if span.variable is None:
            assert rendered[span.start : span.end] == source[slice(*span.source)]
        else:
            assert source[slice(*span.source)] == f"{{{{{span.variable}}}}}"
            assert rendered[span.start : span.end] == variables[span.variable]


# --- the twelve -------------------------------------------------------------------------------------------------------


def test_the_pieces_of_the_twelve_make_the_prompt(looked: Looked) -> None:
    trace = looked.traced.assembly
    assert trace.final is not None
    system = render_prompt(trace.final)
    found = pieces(trace)
    assert all(system[piece.start : piece.end] == piece.text for piece in found)
    left = [system[one.end : two.start] for one, two in zip(found, found[1:], strict=False)]
    assert set(left) <= {"", "\n\n"}
    contexts = "\n\n".join(part.text for part in render_context_sections(trace.final))
    assert all(contexts[piece.start : piece.end] == piece.text for piece in pieces(trace, "contexts"))


def test_each_piece_is_named_with_its_plugin_and_line(looked: Looked) -> None:
    owners = {(piece.entry, piece.text): piece.writer for piece in pieces(looked.traced.assembly)}
    rules = {text: writer.name for (entry, text), writer in owners.items() if entry == "house:rules"}
    assert rules == {"House rules: be brief, and be kind.": "ground", " Whisper.": "whisper"}
    assert owners["style", "Write short sentences."].name == "style-guide"
    rome = next(piece for piece in pieces(looked.traced.assembly) if piece.variable == "city")
    assert (rome.text, rome.writer.name) == ("Rome", "travel")
    assert rome.via is not None
    assert rome.via.name == "ground"
    assert rome.writer.hook == "system_prompt_assemble"
    for writer in owners.values():
        assert writer.file is not None
        assert writer.line is not None


def test_the_chain_of_a_piece_is_everybody_who_had_it_in_hand(looked: Looked) -> None:
    rules = next(piece for piece in pieces(looked.traced.assembly) if piece.entry == "house:rules")
    assert [writer.name for writer in rules.chain] == ["ground", "shouting", "whisper"]


@pytest.mark.anyio
async def test_empty_texts_and_missing_values_have_no_pieces() -> None:
    class Empty:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("nothing", "", order=1)
            ctx.prompt.section("void", "{{void}}", order=2)
            ctx.prompt.variable("void", lambda _: None, missing="empty")

    async with Harness(plugins=[Empty()], autoload=False) as harness:
        with tracing(harness) as tracer:
            await harness.assemble()
    assert {piece.entry for piece in pieces(tracer.assemblies[0])} == {"harness:identity"}
