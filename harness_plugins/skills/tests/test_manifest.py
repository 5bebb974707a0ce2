"""Reading SKILL.md: what is one, what is none, and that no file keeps the reader busy."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from harness_skills._manifest import Manifest, ManifestError, parse
from hypothesis import given, strategies as st


def test_name_description_and_text() -> None:
    text = "---\nname: release-notes\ndescription: >\n  How we write\n  release notes.\nlicense: MIT\n---\n\n# Title\n\n---\nend\n"
    assert parse(text, "folder") == Manifest(
        name="release-notes", description="How we write release notes.", body="# Title\n\n---\nend"
    )


@pytest.mark.parametrize(
    ("text", "name", "description", "body"),
    [
        ("\ufeff---\r\nname: a\r\ndescription: b\r\n---\r\nc\r\n", "a", "b", "c"),
        ("---\ndescription: b\n---", "folder", "b", ""),
        ("---\nname: '1'\ndescription: \"a: b\\nc\"\n...\nbody", "1", "a: b c", "body"),
        ("---\nname: 2024-01-01\ndescription: no\n---\n", "2024-01-01", "no", ""),
        ("---\ndescription: |\n  one\n  two\nmetadata:\n  name: inner\n---\n", "folder", "one two", ""),
        ('---\ndescription: "a\\ud800b\\x1b[31mc"\n---\n', "folder", "a b [31mc", ""),
    ],
)
def test_the_usual_ways_to_write_it(text: str, name: str, description: str, body: str) -> None:
    assert parse(text, "folder") == Manifest(name=name, description=description, body=body)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin"),
        ("# Title\n---\nname: a\n---\n", "does not begin"),
        ("----\nname: a\n---\n", "does not begin"),
        ("---\nname: a\ndescription: b\n", "no end"),
        ("---\nname: a\n---\n", "no description"),
        ("---\nname: a\ndescription: '  '\n---\n", "no description"),
        ("---\nname: a\ndescription: [b]\n---\n", "no description"),
        ("---\nname: a b\ndescription: c\n---\n", "name 'a b'"),
        ("---\nname: ../x\ndescription: c\n---\n", "name '../x'"),
        ("---\nname: [a]\ndescription: c\n---\n", "name"),
        (f"---\nname: {'a' * 65}\ndescription: c\n---\n", "64"),
        ("---\nname: a\ndescription: b: c\n---\n", "not YAML"),
        ("---\n- a\n---\n", "list of fields"),
        ("---\n---\n", "list of fields"),
        ("---\n&a [*a]\n---\n", "not YAML"),
        ("---\n" + "[" * 16_000 + "\n---\n", "not YAML"),
        ("---\ndescription: " + "x" * 17_000 + "\n---\n", "longer than"),
        ("---\nname: a\x00\ndescription: b\n---\n", "not YAML"),
        ("---\n? [a, b]\n: c\n---\n", ""),
    ],
)
def test_what_is_no_skill_says_why(text: str, why: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(text, "fol der")
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400


def test_repeated_references_cost_nothing() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'x'}]" for n in range(20)]
    assert parse("---\n" + "\n".join(levels) + "\ndescription: d\n---\n", "bomb").description == "d"


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=200)


@given(WORDS.filter(str.strip), st.sampled_from([None, '"', "'", "|", ">"]))
def test_what_a_yaml_writer_writes_is_read(description: str, style: Any) -> None:
    front = yaml.safe_dump({"name": "a", "description": description}, default_style=style, allow_unicode=True)
    shown = "".join(ch if ch.isprintable() else " " for ch in description).split()
    try:
        found = parse(f"---\n{front}---\nbody", "x")
    except ManifestError:
        assert not shown
    else:
        assert found.description.split() == shown
        assert found.body == "body"


@given(st.text(max_size=300))
def test_any_text_is_a_skill_or_none(text: str) -> None:
    for candidate in (text, f"---\n{text}\n---\n{text}"):
        try:
            parse(candidate, "x").description.encode("utf-8")
        except ManifestError:
            pass
