"""The tables of all error codes and of all finding codes; each code has a page of its own, written by hand."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from harness_core.errors import HarnessError
from harness_core.host.findings import CODES

PLUGINS = Path(__file__).parents[2] / "harness_plugins"

ERRORS = """\
# Errors

This page is written by `python scripts/write_reference.py`, from the classes themselves.

Every error derives from `HarnessError`. Its message ends with its code, in brackets, and says who, where, and what to
do; its attributes hold the same for programs: `plugin`, `distribution`, `version`, `hook`, `kind`, `entry`, `layer`,
`names`, `known`, `file`, `line`, `column`, `remedy`. Each code has a page with its cause, an example and the remedy.
"""

FINDINGS = """\
# Findings

This page is written by `python scripts/write_reference.py`, from the list of codes.

`harness check` reports what can be known before the first model call, and the test kit what breaks the contract of a
plugin. Each finding has a code, a severity, the place and a remedy; `--strict` makes warnings fail as well, `--json` and
`--sarif FILE` are for programs and code hosts. Each code has a page with its cause, an example and the remedy.

| code | severity | meaning |
|---|---|---|
"""

_IDS = re.compile(r"\s*\((?:[A-Z]+-?\d+(?: ff)?(?:, )?)+\)")


def plugin_packages() -> list[str]:
    """The packages of the plugins that come with the framework, by name."""
    return sorted(path.parent.name for path in PLUGINS.glob("*/src/*/__init__.py"))


def error_classes() -> list[type[HarnessError]]:
    """Every error class of the core and of the plugins that come with it, in the order of the page."""
    packages = ["harness_core", *plugin_packages()]
    for name in packages:
        for module in _modules(import_module(name)):
            import_module(module)
    found = [kind for kind in _derived(HarnessError) if kind.__module__.partition(".")[0] in packages]
    places = {kind: (packages.index(kind.__module__.partition(".")[0]), *_place(kind)) for kind in found}
    return sorted(found, key=places.__getitem__)


def _modules(package: ModuleType) -> Iterator[str]:
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not each.name.endswith(".__main__"):
            yield each.name


def _derived(kind: type[HarnessError]) -> Iterator[type[HarnessError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _derived(each)


def _place(kind: type) -> tuple[str, int]:
    module = kind.__module__
    return ("" if module == "harness_core.errors" else module, inspect.getsourcelines(kind)[1])


def meaning(kind: type) -> str:
    """The first paragraph of a class's docstring, as prose for readers who know no identifiers of the specification."""
    paragraph = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
    return _IDS.sub("", paragraph).replace("``", "`")


def errors_page() -> str:
    sections: dict[str, list[str]] = {}
    for kind in error_classes():
        package = kind.__module__.partition(".")[0]
        heading = "The framework" if package == "harness_core" else f"The plugin distribution `{package}`"
        row = f"| [`{kind.code}`](errors/{kind.code}.md) | `{kind.__name__}` | {meaning(kind)} |"
        sections.setdefault(heading, []).append(row)
    tables = [
        f"## {heading}\n\n| code | class | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        for heading, rows in sections.items()
    ]
    return "\n".join([ERRORS, *tables])


def findings_page() -> str:
    rows = [
        f"| [`{code}`](findings/{code}.md) | {severity.value} | {text} |\n" for code, (severity, text) in CODES.items()
    ]
    return FINDINGS + "".join(rows)
