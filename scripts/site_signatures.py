"""The API on the site: classes of attrs with their fields as a signature, and docstrings without the ids of requirements.

An extension of griffe, which reads the source for mkdocstrings and knows the dataclasses of the standard library only.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Signatures"]

_DECORATORS = ("attrs.define", "attrs.frozen", "attrs.mutable")
_ID = r"(?:[A-Z]{1,8}-\d{2}|D\d{1,2})"
_IDS = re.compile(rf"\s+\({_ID}(?:(?:, | and ){_ID})*(?: ff)?\)|, {_ID}(?=\))")


class Signatures(griffe.Extension):
    """Gives each class of attrs the `__init__` that attrs will give it, as far as it is public."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called when all modules are read, so that base classes are known."""
        self._visit(pkg)

    def _visit(self, what: griffe.Object) -> None:
        if what.docstring is not None:
            what.docstring.value = _IDS.sub("", what.docstring.value)
        if isinstance(what, griffe.Class) and "__init__" not in what.members and _made_by(what) is not None:
            what.set_member("__init__", _init(what))
        for member in list(what.members.values()):
            if isinstance(member, griffe.Object):  # and no alias
                self._visit(member)


def _made_by(class_: griffe.Class) -> dict[str, Any] | None:
    """The arguments of the decorator; None where the class is none of attrs."""
    for decorator in class_.decorators:
        if decorator.callable_path in _DECORATORS:
            return _arguments(decorator.value)
    return None


def _arguments(value: Any) -> dict[str, Any]:
    if not isinstance(value, griffe.ExprCall):
        return {}
    return {each.name: each.value for each in value.arguments if isinstance(each, griffe.ExprKeyword)}


def _init(class_: griffe.Class) -> griffe.Function:
    fields: dict[str, griffe.Parameter] = {}
    for each in (*reversed(class_.mro()), class_):
        if (made := _made_by(each)) is not None:
            fields |= {field.name: field for field in _fields(each, str(made.get("kw_only")) == "True")}
    ordered = sorted(fields.values(), key=lambda field: field.kind is griffe.ParameterKind.keyword_only)
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function("__init__", parent=class_, parameters=griffe.Parameters(own, *ordered), returns="None")


def _fields(class_: griffe.Class, kw_only: bool) -> list[griffe.Parameter]:
    found = []
    for member in class_.members.values():
        if not isinstance(member, griffe.Attribute) or member.annotation is None or member.name.startswith("_"):
            continue
        if "property" in member.labels or "instance-attribute" not in member.labels:
            continue
        call = isinstance(member.value, griffe.ExprCall) and member.value.canonical_path == "attrs.field"
        said = _arguments(member.value) if call else {}
        if str(said.get("init")) == "False":
            continue
        only = kw_only or str(said.get("kw_only")) == "True"
        kind = griffe.ParameterKind.keyword_only if only else griffe.ParameterKind.positional_or_keyword
        default = said.get("default") if call else member.value
        if "factory" in said:
            default = griffe.ExprCall(function=said["factory"], arguments=[])
        annotation = _taken_by(class_, said.get("converter")) or member.annotation
        found.append(griffe.Parameter(member.name, annotation=annotation, kind=kind, default=default))
    return found


def _taken_by(class_: griffe.Class, converter: Any) -> Any:
    """What a converter takes: a field may be given that, and keeps what the converter makes of it."""
    if not isinstance(converter, griffe.ExprName):
        return None
    try:
        function = class_.modules_collection[converter.canonical_path]
        taken = function.parameters[0].annotation if isinstance(function, griffe.Function) else None
    except (KeyError, IndexError):
        return None
    return taken if str(taken) != "Any" else None
