"""What a plugin declares, held against what people can read of it: settings, names, order numbers.

Reads the plugin's own source where descriptions of settings stand there. Runs nothing of the plugin but its set-up.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from cattrs.errors import StructureHandlerNotFoundError

from harness_core._text import quoted
from harness_core.host.config import config_converter
from harness_core.host.descriptions import descriptions
from harness_core.host.findings import Finding, about
from harness_core.prompt._entries import TextEntry
from harness_core.testing._scene import StoppedError, Subject, scene, temporary

__all__ = ["names", "orders", "settings"]


# --- settings ---------------------------------------------------------------------------------------------------------


async def settings(subject: Subject) -> list[Finding]:
    """The Config class: attrs, with a type and a description for each field."""
    plugin = imported(subject)
    config = getattr(plugin, "Config", None)
    if config is None:
        return []
    if not (inspect.isclass(config) and attrs.has(config)):
        message = f"The Config of {subject.source.label} is no attrs class, so that no setting can be checked."
        return [subject.finding("untyped-setting", message, "Write it as @attrs.define class Config.")]
    return [*_untyped(subject, config), *_undescribed(subject, config)]


def imported(subject: Subject) -> Any:
    """The plugin itself.

    Raises:
        StoppedError: it cannot be imported.
    """
    try:
        return subject.source.imported()
    except Exception as error:
        raise StoppedError.of(subject, "plugin-failed", error, "Correct what the message says.") from error


def _untyped(subject: Subject, config: type) -> Iterator[Finding]:
    try:
        hints = get_type_hints(config)
    except Exception as error:
        message = f"The types of {config.__qualname__} of {subject.source.label} cannot be read: {error}."
        yield subject.finding("untyped-setting", message, "Import what the annotations name.", kind="setting")
        return
    for field in attrs.fields(config):
        if field.init and (field.name not in hints or not _settable(hints[field.name])):
            written = getattr(hints.get(field.name), "__name__", hints.get(field.name)) or "no type"
            message = (
                f"The setting {quoted(field.name)} of {subject.source.label} has {written}, for which a composition has no "
                "value."
            )
            remedy = "Declare a type made of str, int, float, bool, list, dict, Literal and attrs classes."
            yield subject.finding("untyped-setting", message, remedy, kind="setting", entry=field.name)


_converter = config_converter()


def _settable(kind: Any, inside: tuple[type, ...] = ()) -> bool:
    """Is there a way from a composition's values to this type? ``inside`` are the classes that it is in a field of."""
    if kind in (Any, types.NoneType) or kind in inside:
        return True
    if get_origin(kind) is Callable:
        return False
    if inspect.isclass(kind) and attrs.has(kind):
        try:
            hints = get_type_hints(kind)
        except Exception:  # it names something that cannot be found; neither could a composition's values
            return False
        # What no composition sets may be of any type: fields that the class fills itself, and class variables.
        fields = [each.name for each in attrs.fields(kind) if each.init]
        return all(name in hints and _settable(hints[name], (*inside, kind)) for name in fields)
    parts = [each for each in get_args(kind) if not isinstance(each, (str, int, float, bool))]
    if parts:
        return all(_settable(each, inside) for each in parts if each is not Ellipsis)
    try:
        _converter.structure(object(), kind)
    except StructureHandlerNotFoundError:
        return False
    except Exception:  # it can be given a value, only not this one
        return True
    return True


def _undescribed(subject: Subject, config: type) -> Iterator[Finding]:
    known = descriptions(config)
    for field in attrs.fields(config):
        if field.init and not known.get(field.name, "").strip():
            message = f"Nothing says what the setting {quoted(field.name)} of {subject.source.label} is."
            remedy = (
                'Put a string below the field, or metadata={"description": ...} on it, or name it in double backquotes in '
                "the docstring of the class."
            )
            yield subject.finding("undescribed-setting", message, remedy, kind="setting", entry=field.name)


# --- sections and contexts --------------------------------------------------------------------------------------------


async def _entries(subject: Subject) -> list[TextEntry]:
    """The sections and contexts that the plugin registers, in all scopes."""
    with temporary() as folder:
        async with scene(subject, folder) as here:
            before = set(map(id, _all_entries(here.harness)))
            await here.install()
            return [entry for entry in _all_entries(here.harness) if id(entry) not in before]


def _all_entries(harness: Any) -> list[TextEntry]:
    found = [entry for scope in harness.prompt.layers() for entry in harness.prompt.entries(scope)]
    return [entry for entry in {id(each): each for each in found}.values() if isinstance(entry, TextEntry)]


async def names(subject: Subject) -> list[Finding]:
    """Sections and contexts begin with the plugin's name, or are public names that its README lists.

    Tools and variables are words that a model and an author read; they are free, and clashes are found where they happen.
    """
    prefixes = {subject.source.name}
    if subject.source.distribution is not None:
        prefixes.add(re.sub(r"^(pluggy-)?harness-", "", subject.source.distribution))
    found = []
    for entry in await _entries(subject):
        own = any(entry.name == prefix or re.match(rf"{re.escape(prefix)}[:./]", entry.name) for prefix in prefixes)
        if not own and f"`{entry.name}`" not in (subject.description or ""):
            message = (
                f"The {entry.kind} {quoted(entry.name)} of {subject.source.label} does not carry the plugin's name."
            )
            better = f"{subject.source.name}:{entry.name.rpartition(':')[2]}"
            remedy = f"Call it {better!r}, or, where others rely on the name, list it in the README and install again."
            facts = {"kind": entry.kind, "entry": entry.name, **_place(entry)}
            found.append(subject.finding("unprefixed-name", message, remedy, **facts))
    return found


async def orders(subject: Subject) -> list[Finding]:
    """Each order number stands on a line of the README that names its section or context: others place theirs by it."""
    found = []
    for entry in await _entries(subject):
        lines = [line for line in (subject.description or "").splitlines() if entry.name in line]
        if not any(_says(line, entry.order) for line in lines):
            message = (
                f"No line of the README says that the {entry.kind} {quoted(entry.name)} of {subject.source.label} has "
                f"order {_written(entry.order)}."
            )
            remedy = (
                "Add a line, or a row of a table, with the name and the number: others place theirs by it. "
                "Then install the distribution again, editable or not: the README is read from its metadata."
            )
            facts = {"kind": entry.kind, "entry": entry.name, **_place(entry)}
            found.append(subject.finding("undocumented-order", message, remedy, **facts))
    return found


_NUMBER = re.compile(r"(?<![\w.-])[-\u2212]?\d+(?:\.\d+)?(?![\w.]*\w)")


def _says(line: str, order: float) -> bool:
    """Does a line have this number, however it is written: 150, 150.0, or with a minus sign of typographers?"""
    return any(float(each.replace("\u2212", "-")) == order for each in _NUMBER.findall(line))


def _written(order: float) -> str:
    return str(int(order)) if float(order).is_integer() else repr(float(order))


def _place(entry: TextEntry) -> dict[str, Any]:
    facts = about(None, entry.place)
    return {name: facts[name] for name in ("file", "line") if name in facts}
