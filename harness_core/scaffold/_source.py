"""Putting parts together to the modules of a new plugin: its package and its tests. Text in, text out; writes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from textwrap import indent

from harness_core.scaffold._hooks import HOOK_PARTS
from harness_core.scaffold._lanes import LANE_PARTS
from harness_core.scaffold._parts import WIDTH, Imports, Key, Part
from harness_core.scaffold.choices import Choices

__all__ = ["keys_of", "package_files", "parts_of", "test_files"]


def parts_of(choices: Choices) -> list[Part]:
    """The parts that were chosen, lanes first."""
    return [LANE_PARTS[lane](choices) for lane in choices.lanes] + [HOOK_PARTS[hook](choices) for hook in choices.hooks]


def keys_of(parts: Iterable[Part]) -> list[Key]:
    """The keys of all parts, each once."""
    return list({key.name: key for part in parts for key in part.keys}.values())


def package_files(choices: Choices) -> dict[str, str]:
    """The modules of the package, by their place in it."""
    parts = parts_of(choices)
    files = {"__init__.py": _package(choices), "plugin.py": _plugin(choices, parts), "py.typed": ""}
    if choices.config:
        files["config.py"] = _config(choices, keys_of(parts))
    return files


def _package(choices: Choices) -> str:
    names: list[str] = sorted(["Config", choices.class_name] if choices.config else [choices.class_name])
    own: list[tuple[str, tuple[str, ...]]] = [(f"{choices.module}.plugin", (choices.class_name,))]
    if choices.config:
        own.insert(0, (f"{choices.module}.config", ("Config",)))
    return _module(f"The {choices.words} plugin for pluggy-harness.", "", [_lines(own)], names)


def _plugin(choices: Choices, parts: Sequence[Part]) -> str:
    merged = _merged([part.imports for part in parts])
    if choices.config:
        merged.setdefault("harness_core", set()).update(("PluginContext", "hookimpl"))
        merged[f"{choices.module}.config"] = {"Config"}
    constants = [f'NAME = "{choices.name}"\n"""The plugin\'s name, with which the names of what it registers begin."""']
    if not any("NAME" in part.setup + part.methods for part in parts):
        constants = []
    if not choices.config:
        constants += [f'{key.name.upper()} = {key.default}\n"""{key.doc}"""' for key in keys_of(parts)]
    constants += [part.constants for part in parts if part.constants]
    body = [_class(choices, parts)]
    doc = "The plugin: what it contributes and where it listens."
    return _module(
        doc, "\n".join(dict.fromkeys(constants)), _groups(merged, choices.module), [choices.class_name], body
    )


def _class(choices: Choices, parts: Sequence[Part]) -> str:
    name = "NAME" if any("NAME" in part.setup + part.methods for part in parts) else f'"{choices.name}"'
    members = [f"name = {name}" + ("\nConfig = Config" if choices.config else "")]
    state = list(dict.fromkeys(part.state for part in parts if part.state))
    if state:
        members.append("\n".join(["def __init__(self) -> None:", *(f"    {line}" for line in state)]))
    members += [_setup(choices, parts)] if choices.config or any(part.setup for part in parts) else []
    members += [part.methods for part in parts if part.methods]
    head = f'class {choices.class_name}:\n    """{_sentence(choices)}"""\n\n'
    return head + indent("\n\n".join(members), "    ")


def _sentence(choices: Choices) -> str:
    kinds = [f"a {lane.removesuffix('s')}" for lane in choices.lanes]
    does = [f"contributes {_listing(kinds)}"] if kinds else []
    if choices.hooks:
        does.append(
            f"listens to {_listing(choices.hooks) if len(choices.hooks) < 4 else f'{len(choices.hooks)} hooks'}"
        )
    return f"{_capital(', and '.join(does))}."


def _listing(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _setup(choices: Choices, parts: Sequence[Part]) -> str:
    """The set-up; variables first, as texts refer to them."""
    ordered = sorted((part.setup for part in parts if part.setup), key=lambda setup: ".variable(" not in setup)
    lines = "\n".join(ordered)
    begin = []
    if "config." in lines.replace("self._config.", ""):
        begin.append("config: Config = ctx.config")
    if any("self._config" in part.methods for part in parts):
        begin.append("self._config = config" if begin else "self._config: Config = ctx.config")
    body = "\n".join([*begin, *([lines] if lines else [])])
    return f"@hookimpl\ndef harness_setup(self, ctx: PluginContext) -> None:\n{indent(body, '    ')}"


def _config(choices: Choices, keys: Sequence[Key]) -> str:
    fields = "\n".join(f'    {key.name}: {key.kind} = {key.field or key.default}\n    """{key.doc}"""' for key in keys)
    body = f'@attrs.define(kw_only=True)\nclass Config:\n    """Settings of the {choices.words} plugin."""\n\n{fields}'
    doc = "The settings: the keys of ``[plugins." + choices.name + ".config]`` in a composition file."
    return _module(doc, "", [["import attrs"]], ["Config"], [body])


def test_files(choices: Choices) -> dict[str, str]:
    """The tests, by their place in the folder of tests."""
    parts = parts_of(choices)
    kit: Imports = {
        choices.module: (choices.class_name,),
        "pytest": (),
        "harness_core.testing": ("plugin_contract",),
    }
    merged = _merged([kit, *(part.test_imports for part in parts)])
    doc = "What the plugin does, each behaviour by itself, and what every plugin must keep to."
    head = f"pytestmark = pytest.mark.anyio\n\ntest_contract = plugin_contract({choices.class_name})"
    tests = _module(doc, head, _groups(merged, choices.module), [], [part.tests for part in parts])
    return {"conftest.py": _CONFTEST, "test_plugin.py": tests}


_CONFTEST = '''\
"""Loads the test kit of pluggy-harness, and runs asynchronous tests on asyncio."""

from __future__ import annotations

import pytest

pytest_plugins = ["harness_core.testing"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
'''

# --- modules ----------------------------------------------------------------------------------------------------------


def _module(
    doc: str, constants: str, imports: Sequence[Sequence[str]], public: Sequence[str], body: Sequence[str] = ()
) -> str:
    """A module: its docstring, groups of import lines, public names, constants, and blocks of definitions."""
    listed = ", ".join(f'"{name}"' for name in public)
    head = [f'"""{doc}"""', "from __future__ import annotations", *("\n".join(lines) for lines in imports)]
    if public:
        head.append(f"__all__ = [{listed}]")
    if constants:
        head.append(constants)
    return "\n\n\n".join(["\n\n".join(head), *body]) + "\n"


def _merged(imports: Iterable[Imports]) -> dict[str, set[str]]:
    merged: dict[str, set[str]] = {}
    for each in imports:
        for module, names in each.items():
            merged.setdefault(module, set()).update(names)
    return merged


def _groups(imports: dict[str, set[str]], own: str) -> list[list[str]]:
    """The import lines: standard library, what is installed, the package itself."""
    groups: list[list[tuple[str, tuple[str, ...]]]] = [[], [], []]
    for module, names in imports.items():
        top = module.partition(".")[0]
        place = 2 if top == own else 0 if top in sys.stdlib_module_names else 1
        groups[place].append((module, tuple(names)))
    return [_lines(group) for group in groups if group]


def _lines(imports: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
    """The lines as isort orders them: whole modules first, then what is taken from modules, classes before functions."""
    modules = sorted(imports, key=lambda each: (bool(each[1]), each[0]))
    return [_line(module, names) for module, names in modules]


def _line(module: str, names: tuple[str, ...]) -> str:
    if not names:
        return f"import {module}"
    ordered = sorted(names, key=lambda name: (not name[:1].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in ordered), ")"])
