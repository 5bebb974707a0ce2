"""The API on the site: what the extension makes of classes of attrs and of docstrings."""

from __future__ import annotations

from pathlib import Path

import griffe
import pytest

ROOT = Path(__file__).parents[2]

SOURCE = '''
"""A module (UC-21)."""
from typing import Any, ClassVar
import attrs


def _text(value: str | int) -> str:
    return str(value)


def _same(value: Any) -> Any:
    return value


@attrs.frozen
class Base:
    first: str
    last: int = attrs.field(default=3, kw_only=True)


@attrs.define(kw_only=True)
class Child(Base):
    """A child, as agreed
    (D15, CANCEL-02). More (than that, SCOPE-02)."""

    kind: ClassVar[str] = "child"
    text: str = attrs.field(converter=_text)
    same: str = attrs.field(converter=_same)
    many: list[str] = attrs.field(factory=list)
    hidden: int = attrs.field(default=1, init=False)
    _own: int = 0

    @property
    def computed(self) -> int:
        return 1


class Plain:
    def __init__(self, one: int) -> None:
        self.one = one
'''


@pytest.fixture
def module(tmp_path: Path) -> griffe.Module:
    (tmp_path / "planted.py").write_text(SOURCE, encoding="utf-8")
    extensions = griffe.load_extensions(str(ROOT / "scripts" / "site_signatures.py"))
    loaded = griffe.load("planted", search_paths=[str(tmp_path)], extensions=extensions)
    assert isinstance(loaded, griffe.Module)
    return loaded


def signature(module: griffe.Module, name: str) -> list[str]:
    return [
        f"{'*, ' if each.kind is griffe.ParameterKind.keyword_only else ''}{each.name}: {each.annotation}"
        + (f" = {each.default}" if each.default is not None else "")
        for each in module[name].parameters
        if each.name != "self"
    ]


def test_a_class_of_attrs_has_its_fields_as_a_signature(module: griffe.Module) -> None:
    assert signature(module, "Base") == ["first: str", "*, last: int = 3"]
    assert signature(module, "Child") == [
        "first: str", "*, last: int = 3", "*, text: str | int", "*, same: str", "*, many: list[str] = list()",
    ]  # fmt: skip
    assert signature(module, "Plain") == ["one: int"]


def test_ids_of_requirements_are_left_out(module: griffe.Module) -> None:
    assert module.docstring is not None
    assert module.docstring.value == "A module."
    text = module["Child"].docstring.value
    assert text == "A child, as agreed. More (than that)."
