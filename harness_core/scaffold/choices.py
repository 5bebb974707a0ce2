"""What somebody chose for a new plugin, and which names are valid and free. Owns the choices, and writes nothing."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import importlib_metadata

import harness_core
from harness_core._text import nearest, quoted, quoted_list
from harness_core.errors import HarnessError
from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host.discovery import ENTRY_POINT_GROUP

__all__ = ["HOOKS", "LANES", "LICENCES", "Choices", "ScaffoldError", "check_free", "checked_name", "nearest_name"]

LANES = ("section", "context", "variable", "tools")
HOOKS = (*WATERFALLS, *OBSERVERS)
LICENCES = ("MIT", "Apache-2.0", "BSD-3-Clause", "none")

PREFIX = "harness-"
LONGEST = 32
"""Characters of a name: it begins the names of tools, which model services limit to 64."""

_VALID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
_RULE = (
    f"A name is made of lower-case letters, digits and single hyphens, begins with a letter, and has at most {LONGEST} "
    "characters"
)


class ScaffoldError(HarnessError):
    """A new plugin cannot be begun this way: its name, a choice, or the folder; nothing was written."""

    code = "scaffold"


def checked_name(given: str) -> str:
    """The plugin's name; the prefix of distributions may stand before it.

    Raises:
        ScaffoldError: it is no valid name; says what one is, and the nearest.
    """
    name = given.removeprefix(PREFIX)
    if given.startswith(f"pluggy-{PREFIX}"):
        raise ScaffoldError(
            f"{quoted(given)} is the kind of name that the plugins of pluggy-harness itself have.",
            remedy=f"Leave out the prefix: {nearest_name(given)!r} becomes the distribution "
            f"{PREFIX + (nearest_name(given) or 'NAME')!r}.",
            entry=given,
        )
    if _VALID.fullmatch(name) and len(name) <= LONGEST:
        return name
    near = nearest_name(given)
    raise ScaffoldError(
        f"{quoted(given)} is no name for a plugin.",
        remedy=f"{_RULE}{f'; {near!r} would be one' if near else ', such as weather'}.",
        entry=given,
        known=(near,) if near else (),
    )


def nearest_name(given: str) -> str | None:
    """The valid name that is most like ``given``, if anything of it can be kept."""
    plain = unicodedata.normalize("NFKD", given).encode("ascii", "ignore").decode()
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", plain).lower()
    name = "-".join(re.findall(r"[a-z0-9]+", words)).removeprefix(f"pluggy-{PREFIX}").removeprefix(PREFIX)
    if name[:1].isdigit():
        name = f"plugin-{name}"
    return name[:LONGEST].rstrip("-") or None


def _trimmed(value: str) -> str:
    return value.strip()


def _one_line(what: str, longest: int) -> Callable[[Choices, attrs.Attribute[str], str], None]:
    def check(_: Choices, __: attrs.Attribute[str], value: str) -> None:
        if not value.isprintable() or len(value) > longest:
            raise ScaffoldError(
                f"The {what} must be one line of at most {longest} printable characters.",
                remedy="Shorten it; the README has room for more.",
                entry=what,
            )

    return check


def _known(kind: str, known: tuple[str, ...]) -> Callable[[Choices, attrs.Attribute[Any], str | tuple[str, ...]], None]:
    def check(_: Choices, __: attrs.Attribute[Any], value: str | tuple[str, ...]) -> None:
        for each in (value,) if isinstance(value, str) else value:
            if each not in known:
                near = nearest(each, known)
                raise ScaffoldError(
                    f"There is no {kind} called {quoted(each)}.",
                    remedy=f"Did you mean {near!r}?" if near else f"There are: {quoted_list(known)}.",
                    entry=each,
                    known=known,
                )

    return check


def _lanes(value: Iterable[str]) -> tuple[str, ...]:
    return _sorted(value, LANES)


def _hooks(value: Iterable[str]) -> tuple[str, ...]:
    return _sorted(value, HOOKS)


def _sorted(value: Iterable[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """Each once, in the order in which the framework lists them; what is unknown comes last, for the validator."""
    chosen = dict.fromkeys(value)
    return (*(each for each in known if each in chosen), *(each for each in chosen if each not in known))


@attrs.frozen(kw_only=True)
class Choices:
    """What a new plugin is called, and what it does.

    ``lanes`` are of `LANES`, ``hooks`` of `HOOKS`; ``core`` is the version of the framework that it is made for, and
    ``year`` that of its licence.

    Raises:
        ScaffoldError: a choice is none; names what there is.
    """

    name: str = attrs.field(converter=checked_name)
    description: str = attrs.field(default="", converter=_trimmed, validator=_one_line("description", 300))
    author: str = attrs.field(default="", converter=_trimmed, validator=_one_line("author", 100))
    licence: str = attrs.field(default="MIT", validator=_known("licence", LICENCES))
    lanes: tuple[str, ...] = attrs.field(
        default=("section", "tools"), converter=_lanes, validator=_known("lane", LANES)
    )
    hooks: tuple[str, ...] = attrs.field(default=(), converter=_hooks, validator=_known("hook", HOOKS))
    config: bool = True
    core: str
    year: int

    @property
    def distribution(self) -> str:
        return f"{PREFIX}{self.name}"

    @property
    def module(self) -> str:
        return self.distribution.replace("-", "_")

    @property
    def words(self) -> str:
        """The name as it stands in a sentence."""
        return self.name.replace("-", " ")

    @property
    def class_name(self) -> str:
        """The plugin's class, which must not be called like anything else in its module."""
        name = "".join(part.capitalize() for part in self.name.split("-"))
        taken = keyword.iskeyword(name) or hasattr(builtins, name) or name in IMPORTED or name.isupper()
        return f"{name}Plugin" if taken else name

    @property
    def summary(self) -> str:
        """The description, or one that says no more than the name does."""
        return self.description or f"The {self.words} plugin for pluggy-harness"


IMPORTED = frozenset(
    (
        *harness_core.__all__,
        *("Agent", "AgentFactory", "Awaitable", "CallConfig", "Callable", "Config", "Event", "FailureFacts"),
        *("HarnessFactory", "ScriptedAnswer", "ScriptedModel", "ToolResultMessage"),
    )
)
"""Names that the modules of a new plugin may import; a test holds that these are all."""


def check_free(choices: Choices) -> None:
    """Refuse a name that something installed has.

    Raises:
        ScaffoldError: a plugin, a distribution or a module of that name is installed; says which.
    """
    for entry in importlib_metadata.entry_points(group=ENTRY_POINT_GROUP):
        if entry.name == choices.name:
            owner = f" ({entry.dist.metadata['Name']} {entry.dist.version})" if entry.dist is not None else ""
            raise _clash(f"A plugin called {quoted(choices.name)} is installed{owner}", choices.name)
    try:
        version = importlib_metadata.version(choices.distribution)
    except importlib_metadata.PackageNotFoundError:
        pass
    else:
        raise _clash(f"A distribution {choices.distribution!r} is installed ({version})", choices.name)
    found = importlib.util.find_spec(choices.module)
    if found is not None:
        raise _clash(f"A module {choices.module!r} is installed ({found.origin})", choices.name)


def _clash(message: str, name: str) -> ScaffoldError:
    return ScaffoldError(
        f"{message}; two could not be told apart.",
        remedy="Choose another name, or uninstall that one if this is to replace it.",
        entry=name,
    )
