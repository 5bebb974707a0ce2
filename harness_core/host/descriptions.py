"""What is said of the fields of a configuration class, wherever its author said it."""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise

import attrs

__all__ = ["descriptions"]


def descriptions(kind: type) -> dict[str, str]:
    """The description of each field of an attrs class that has one.

    It is taken from the field's ``metadata={"description": ...}``, from a string below the field, from the field's line
    in the docstring's Args or Attributes, or from a docstring that names the field in backquotes.
    """
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if attrs.has(each):
            prose = inspect.cleandoc(each.__doc__ or "")
            for field in attrs.fields(each):
                said = _said_of(field.name, prose)
                if said:
                    found[field.name] = said
            found |= _strings_below(each)
    stated = {field.name: str(field.metadata.get("description", "")) for field in attrs.fields(kind)}
    return {name: " ".join(text.split()) for name, text in {**found, **{k: v for k, v in stated.items() if v}}.items()}


def _said_of(name: str, prose: str) -> str:
    """A docstring's words about one field: its line of Args or Attributes, or all of it where it names the field."""
    line = re.search(rf"^([ \t]*){re.escape(name)}\s*(\(.*?\))?:(.*(?:\n\1[ \t]+\S.*)*)", prose, re.MULTILINE)
    if line is not None:
        return line[3].strip()
    return prose if re.search(rf"`{re.escape(name)}`", prose) else ""


def _strings_below(kind: type) -> dict[str, str]:
    try:
        [definition] = ast.parse(inspect.cleandoc(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}  # without its source, a class has its metadata and its docstring
    found: dict[str, str] = {}
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for field, below in pairwise(body):
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
            found[field.target.id] = text
    return found
