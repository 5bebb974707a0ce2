"""Rendering beyond the cases: purity, literal text, places in errors, and what is remembered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness_core import (
    ContextEntry,
    Harness,
    Literal,
    PromptAssembly,
    Section,
    render_context_sections,
    render_context_snapshot,
    render_prompt,
)
from harness_core.errors import MalformedReferenceError, RenderError, UnknownVariableError, ValuelessVariableError
from harness_core.prompt import RenderedPart, join_context_sections, render_parts
from harness_core.prompt.render import SNAPSHOT_PREAMBLE


@pytest.mark.spec("RND-03")
def test_any_assembly_shaped_value_renders_and_nothing_is_changed() -> None:
    shaped = SimpleNamespace(
        sections=[SimpleNamespace(name="a", text="{{v}}"), SimpleNamespace(name="b", text=Literal("{{"))],
        contexts=[SimpleNamespace(name="c", text="ctx")],
        variables={"v": "value"},
    )
    assert render_prompt(shaped) == "value\n\n{{"  # type: ignore[arg-type]
    assert render_context_snapshot(shaped).endswith("\n\nctx")  # type: ignore[arg-type]
    assert shaped.sections[0].text == "{{v}}"


@pytest.mark.spec("RND-17")
def test_joining_leaves_empty_parts_out() -> None:
    assert join_context_sections([RenderedPart("a", ""), RenderedPart("b", "")]) == ""
    assert join_context_sections([RenderedPart("a", ""), RenderedPart("b", "x")]) == f"{SNAPSHOT_PREAMBLE}\n\nx"


@pytest.mark.spec("D15", "X-22", "X-23", "UC-01", "UC-04")
def test_data_is_never_scanned() -> None:
    hostile = "{{}} {{x}} {{ y }} {{{ }}}"
    assembly = PromptAssembly(
        [
            Section("alone", Literal(hostile)),
            Section("parts", ["Notes of {{who}}:\n", Literal(hostile), " end {{who}}"]),
            Section("verbatim", hostile, interpolate=False),
            Section("verbatim parts", ["{{who}} ", Literal(hostile)], interpolate=False),
            Section("split", ["{{", "who}}"]),
        ],
        variables={"who": "Ada"},
    )
    assert [part.text for part in render_parts(assembly)] == [
        hostile,
        f"Notes of Ada:\n{hostile} end Ada",
        hostile,
        "{{who}} " + hostile,
        "{{who}}",
    ]


@pytest.mark.spec("X-23")
def test_braces_may_come_from_a_variable() -> None:
    assembly = PromptAssembly([Section("s", "{{lbrace}}x}}")], variables={"lbrace": "{{"})
    assert render_prompt(assembly) == "{{x}}"


@pytest.mark.spec("X-24", "UC-01")
def test_a_fault_has_its_place_and_a_remedy() -> None:
    text = "line one\nsee {{ here and {{a}}"
    with pytest.raises(MalformedReferenceError) as caught:
        render_prompt(PromptAssembly([Section("notes", text)], variables={"a": "x"}))
    error = caught.value
    assert (error.line, error.column, error.offset) == (2, 5, 13)
    assert error.closing == text.rindex("}}")
    assert "Literal" in error.remedy
    assert error.reference.startswith("{{ here")


@pytest.mark.spec("RND-09", "RND-11", "UC-05")
def test_unknown_and_valueless_are_told_apart() -> None:
    variables = {"known": "x", "empty": None}
    with pytest.raises(UnknownVariableError) as unknown:
        render_prompt(PromptAssembly([Section("s", "{{nope}}")], variables=variables))
    assert unknown.value.known == ("known", "empty")
    with pytest.raises(ValuelessVariableError) as valueless:
        render_prompt(PromptAssembly([Section("s", "{{empty}}")], variables=variables))
    assert valueless.value.reference == "empty"


@pytest.mark.anyio
@pytest.mark.spec("UC-05")
async def test_a_variable_without_a_value_may_be_empty_or_literal(harness: Harness) -> None:
    for missing in ("error", "empty", "literal"):
        harness.root.prompt.variable(missing, lambda _: None, missing=missing)  # type: ignore[arg-type]
    harness.root.prompt.section("s", "[{{empty}}] [{{literal}}]", order=1)
    assert render_prompt(await harness.assemble()) == "[] [{{literal}}]"
    harness.root.prompt.section("t", "{{error}}", order=2)
    with pytest.raises(ValuelessVariableError):
        render_prompt(await harness.assemble())


@pytest.mark.anyio
@pytest.mark.spec("RND-16")
async def test_a_failing_render_fails_again_and_a_mended_one_succeeds(harness: Harness) -> None:
    text = ["{{x}}"]
    harness.root.prompt.context("c", lambda _: text[0], order=1)
    for _ in range(2):
        with pytest.raises(RenderError) as caught:
            render_context_sections(await harness.assemble())
        assert (caught.value.kind, caught.value.entry) == ("context", "c")
    text[0] = "fine"
    assert [part.text for part in render_context_sections(await harness.assemble())] == ["fine"]


@pytest.mark.anyio
async def test_what_is_remembered_is_never_shown_for_something_else(harness: Harness) -> None:
    harness.root.prompt.variable("v", lambda _: "1")
    harness.root.prompt.section("s", "{{v}}", order=1)
    one = await harness.assemble()
    assert render_prompt(one) == "1"
    other = await harness.assemble()
    other.variables["v"] = "2"
    assert render_prompt(other) == "2"
    other.sections.append(Section("t", "t"))
    assert render_prompt(other) == "2\n\nt"
    assert render_prompt(one) == "1"
    one.variables["v"] = None
    with pytest.raises(ValuelessVariableError):
        render_prompt(one)


texts = st.text(st.sampled_from("{}ab_ 1\n\u00e4"), max_size=14)


def reference_render(text: str, variables: dict[str, str | None]) -> str:
    """The grammar, read off the specification one character at a time."""
    out, i = [], 0
    while i < len(text):
        if text.startswith("{{", i):
            j = i + 2
            while j < len(text) and text[j] not in "{}":
                j += 1
            if text.startswith("}}", j):
                name = text[i + 2 : j]
                if not (name and name[0] in "ab" and all(ch in "ab_1" for ch in name)):
                    raise MalformedReferenceError("", form="bad_name")
                if name not in variables:
                    raise UnknownVariableError("")
                value = variables[name]
                if value is None:
                    raise ValuelessVariableError("")
                out.append(value)
                i = j + 2
                continue
            if "}}" in text[i + 2 :]:
                raise MalformedReferenceError("", form="not_a_group")
            out.append(text[i : i + 2])
            i += 2
            continue
        out.append(text[i])
        i += 1
    return "".join(out)


@pytest.mark.spec("RND-04", "RND-06", "RND-07", "RND-08", "RND-12")
@given(st.lists(texts, max_size=4), st.dictionaries(st.sampled_from(["a", "b", "ab"]), st.one_of(st.none(), texts)))
def test_the_renderer_agrees_with_the_grammar_on_any_text(parts: list[str], variables: dict[str, Any]) -> None:
    assembly = PromptAssembly([Section(str(i), part) for i, part in enumerate(parts)], variables=variables)
    try:
        expected = "\n\n".join(text for part in parts if (text := reference_render(part, variables)))
    except RenderError as error:
        with pytest.raises(RenderError) as caught:
            render_prompt(assembly)
        assert type(caught.value) is type(error)
        assert getattr(caught.value, "form", None) == getattr(error, "form", None)
    else:
        assert render_prompt(assembly) == expected


@pytest.mark.spec("RND-14", "UC-02")
def test_contexts_take_data_too() -> None:
    assembly = PromptAssembly(contexts=[ContextEntry("notes", [Literal("{{变量}} {{ x }} {{hl|}}")])])
    assert render_context_snapshot(assembly).endswith("{{变量}} {{ x }} {{hl|}}")
