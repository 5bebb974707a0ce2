"""Compositions that are broken on purpose: whatever stands in a file, only findings come out, at the right lines."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness_core.errors import CompositionError
from harness_core.host import find_composition
from harness_core.host.check_composition import check_composition
from harness_core.host.discovery import PluginSource
from harness_core.host.documents import collect
from harness_core.host.lines import lines_of
from harness_core.host.reading import read_composition, structured
from tests.compositions._plugins import INSTALLED, source

# --- lines --------------------------------------------------------------------------------------------------------------


@attrs.define
class Writer:
    """A TOML text in one of the ways to write it, with the line of each path."""

    draw: Any
    text: str = ""
    lines: dict[str, int] = attrs.field(factory=dict)

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def say(self, path: str) -> None:
        self.lines[path] = self.line

    def noise(self) -> None:
        self.text += self.draw(st.sampled_from(["", "", "\n", "# [plugins.a] a = 1\n", "  \n", "# \x85\u2028 x\n"]))

    def key(self, key: str) -> str:
        if key.isalnum() and key.isascii() and self.draw(st.booleans()):
            return key
        if "'" not in key and self.draw(st.booleans()):
            return f"'{key}'"
        return json.dumps(key, ensure_ascii=self.draw(st.booleans())) if key.isprintable() else json.dumps(key)

    def table(self, table: dict[str, Any], path: str, header: str) -> None:
        under = {key: value for key, value in table.items() if isinstance(value, dict) and self.draw(st.booleans())}
        lists = {
            key: value
            for key, value in table.items()
            if isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
        }
        for key, value in table.items():
            if key not in under and key not in lists:
                self.noise()
                at = joined(path, key)
                self.say(at)
                self.text += f"{self.draw(st.sampled_from(['', '  ']))}{self.key(key)} = "
                self.value(value, at)
                self.text += self.draw(st.sampled_from(["\n", " # [x]\n"]))
        for key, value in under.items():
            self.noise()
            name = f"{header}.{self.key(key)}" if header else self.key(key)
            self.say(joined(path, key))
            self.text += f"[{name}]\n"
            self.table(value, joined(path, key), name)
        for key, value in lists.items():
            name = f"{header}.{self.key(key)}" if header else self.key(key)
            for index, each in enumerate(value):
                self.noise()
                at = f"{joined(path, key)}[{index}]"
                self.lines.setdefault(joined(path, key), self.line)
                self.say(at)
                self.text += f"[[ {name} ]] # ]]\n"
                self.table(each, at, name)

    def value(self, value: Any, path: str) -> None:
        if isinstance(value, dict):
            self.text += "{ "
            for index, (key, each) in enumerate(value.items()):
                self.text += ", " if index else ""
                self.say(joined(path, key))
                self.text += f"{self.key(key)} = "
                self.value(each, joined(path, key))
            self.text += " }"
        elif isinstance(value, list):
            gap = self.draw(st.sampled_from([" ", "\n  ", " # , ]\n"]))
            self.text += f"[{gap}"
            for index, each in enumerate(value):
                self.say(f"{path}[{index}]")
                self.value(each, f"{path}[{index}]")
                self.text += f",{gap}"
            self.text += "]"
        elif isinstance(value, str) and self.draw(st.booleans()):
            quote = self.draw(st.sampled_from(['"""', "'''"]))
            trimmed = "\n" if value.startswith("\n") else ""
            self.text += f"{quote}{trimmed}{value}{quote}"
        else:
            self.text += json.dumps(value)


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


texts = st.sampled_from(
    ["", "x", "[plugins.a]", "\n[agents.b]\nc = 1\n", "a = 1\n", '"quoted"x', "# no", "]] }} ,", "''x\n\n[y]\n"]
)
keys = st.sampled_from(["a", "b", "plugins", "a b", "ü", "x.y", 'q"q', "it's", "tab\there", "[x]", "# c"])
values = st.recursive(
    texts | st.integers(-9, 9) | st.booleans() | st.floats(0, 9).map(lambda number: round(number, 2)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.dictionaries(keys, values, max_size=4))
def test_the_line_of_everything_is_the_true_one(data: st.DataObject, table: dict[str, Any]) -> None:
    writer = Writer(data.draw)
    writer.table(table, "", "")
    assert tomllib.loads(writer.text) == table
    found = lines_of(writer.text)
    assert {path: found.get(path) for path in writer.lines} == writer.lines


MULTILINE = '''\
[prompt]
persona = """
[plugins.guide]
config = 5
"""
[agents."a.b"]
tools = [
  "x",
  [
    "y"
  ]
]
[plugins]
guide.config.depth.most = 1
[plugins.guide.more]
'''


def lines_of_problems(file: Path) -> list[tuple[str, int | None]]:
    with pytest.raises(CompositionError) as caught:
        structured(collect(file))
    return [(problem.entry or "", problem.line) for problem in caught.value.problems]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_problems_are_told_at_their_lines_whatever_stands_around_them(tmp_path: Path, ending: str, mark: str) -> None:
    (file := tmp_path / "harness.toml").write_bytes((mark + MULTILINE).replace("\n", ending).encode())
    assert lines_of_problems(file) == [("plugins.guide.more", 15), ("agents.a.b.tools[1]", 9)]


def test_lines_of_a_pyproject_are_those_of_its_table(tmp_path: Path) -> None:
    (file := tmp_path / "pyproject.toml").write_text(
        "[prompt]\npersona = 1\n[tool]\nother.prompt.persona = 2\nharness.prompt.persona = 3\n"
        "[tool.harness.plugins.'x y']\nscoope = 4\n"
    )
    assert lines_of_problems(file) == [("prompt.persona", 5), ("plugins.x y.scoope", 7)]


# --- only findings come out ---------------------------------------------------------------------------------------------

DEEP = ".".join(["a"] * 5000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"seed = " + b"1" * 5000, "no valid TOML"),
        (b"[model]\nseed = 0x" + b"f" * 5000, r"model\.seed: an integer has at most 64 bits \(line 2\)"),
        (f"plugins.x.config.{DEEP} = 1".encode(), r"plugins: values are nested more than .* \(line 1\)"),
        (b"a = " + b"[" * 100_000, "too deeply"),
        (b'a = "\x00"', "no valid TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b'\nextends = "' + b"n" * 300 + b'.toml"', "harness.toml:2: .* cannot be looked for: .*too long"),
        (b'extends = ["~nobody-at-all/x.toml"]', "cannot be looked for"),
        (b'extends = [\n".toml", "x.toml"]', "harness.toml:2: there is no file"),
        (b'extends = { "$env" = "HOME" }', "must be a string or a list"),
        (b'plugins.x = { "$env" = "HOME" }', r"plugins\.x: expected a table, got a text from the environment"),
        (b'plugins = { "$env" = "HOME" }', "plugins: expected a table, got a text from the environment"),
        (b'agents.x = { "$env" = "HOME", plugins = {} }', r"agents\.x: .*unknown key 'plugins'"),
        (b'"$env" = "HOME"', "expected a table, got a text from the environment"),
        (b'"$env" = "HOME"\n[plugins.x]', "unknown key 'plugins'"),
        (b'session.durability = "hunter2"', "expected one of 'request', 'event', 'never', got another"),
        (b"sections.a.order = nan", "expected a finite number"),
        (b"agents.a.model.top_p = inf", "expected a finite number"),
        (b'plugins.x.scope = "global"', r"plugins\.x\.scope: no scope can be called so"),
    ],
)
def test_odd_files_are_refused_with_a_reason(tmp_path: Path, text: bytes, said: str) -> None:
    (file := tmp_path / "harness.toml").write_bytes(text)
    with pytest.raises(CompositionError, match=said) as caught:
        read_composition(file)
    assert "hunter2" not in str(caught.value)
    assert caught.value.file == str(file)


def test_all_references_that_cannot_be_resolved_are_told(tmp_path: Path) -> None:
    (file := tmp_path / "harness.toml").write_text(
        'prompt.persona = { "$env" = "HARNESS_TEST_1" }\n\noutermost = [{ "$env" = "" }]\nautoload = { "$env" = "HARNESS_TEST_2" }'
    )
    assert lines_of_problems(file) == [("prompt.persona", 1), ("outermost[0]", 3), ("autoload", 4)]


def test_files_that_lead_back_to_themselves_are_a_circle_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "sub").symlink_to(tmp_path)
    (tmp_path / "harness.toml").write_text('# first\nextends = "sub/harness.toml"\n')
    with pytest.raises(CompositionError, match=r"harness.toml:2: these compositions extend each other") as caught:
        read_composition(tmp_path / "sub" / ".." / tmp_path.name / "harness.toml")
    assert caught.value.message.count(" -> ") == 1


def test_files_that_multiply_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    for index in range(40):
        (tmp_path / f"{index}.toml").write_text(f'extends = ["{index + 1}.toml", "{index + 1}.toml"]')
    (tmp_path / "40.toml").write_text("")
    with pytest.raises(CompositionError, match="more than 200 files"):
        read_composition(tmp_path / "0.toml")


def cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {"plugins": {}}
    made["plugins"]["x"] = made
    return made


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        ({"plugins": {1: {}}}, "plugins: the key 1 is no string"),
        (cyclic(), "plugins: values are nested more than"),
        ({"prompt": 3}, "prompt: expected a table, got an integer"),
        ({"prompt": object()}, "prompt: expected a table, got a object"),
        (["x"], "a preset is a mapping"),
    ],
)
def test_odd_presets_are_refused_by_name(tmp_path: Path, preset: Any, said: str) -> None:
    (file := tmp_path / "harness.toml").write_text('extends = "odd"\n')
    with pytest.raises(CompositionError, match=said) as caught:
        read_composition(file, lambda group: [source("odd", lambda: preset)])
    assert "'odd'" in str(caught.value)


def test_what_a_preset_is_made_of_is_not_what_is_changed(tmp_path: Path) -> None:
    preset = {"plugins": {"guide": {"config": {"list": []}}}}
    (file := tmp_path / "harness.toml").write_text('extends = "odd"\n')
    found = read_composition(file, lambda group: [source("odd", lambda: preset)])
    found.plugins["guide"].config["list"].append(1)
    assert preset == {"plugins": {"guide": {"config": {"list": []}}}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"[tool.harness]\n", True),
        (b"[ tool . 'harness' ]\n", True),
        (b"[tool]\nharness.autoload = false\n", True),
        (b"tool = { harness = {} }\n", True),
        (b"\xef\xbb\xbf[tool.harness]\n", True),
        (b"[tool.harness]\nbroken", True),
        (b"\xff [tool.x]\n", False),
        (b"[project]\nname = '\xe4'\n", False),
        (b'[project]\ndescription = """\n[tool.harness]\n"""\n', False),
        (b"[tool.harness-other]\nbroken\n", False),
        (b"[project]\nbroken", False),
        (b"tool = 5\n# harness", False),
    ],
)
def test_a_pyproject_is_a_composition_where_it_has_the_table(tmp_path: Path, text: bytes, found: bool) -> None:
    (file := tmp_path / "pyproject.toml").write_bytes(text)
    assert find_composition(tmp_path) == (file if found else None)


@pytest.mark.parametrize("kind", ["a link that leads nowhere", "a folder"])
def test_a_composition_that_is_no_file_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "harness.toml"
    file.mkdir() if kind == "a folder" else file.symlink_to(tmp_path / "gone.toml")
    assert find_composition(tmp_path) == file
    with pytest.raises(CompositionError, match="cannot be read"):
        read_composition(file)


# --- at random ----------------------------------------------------------------------------------------------------------

SEED = """\
extends = []
outermost = ["x"]
autoload = false
on_error = "skip"
[prompt]
persona = "text {{x}}"
tool_order = ["<unlisted-tools>"]
[model]
temperature = 0.5
max_tokens = 5
[session]
store = "memory"
config = {}
[plugins.guide]
enabled = true
before = ["x"]
scope = "shed"
config = { text = "x", limit = { "$env" = "HARNESS_TEST_LIMIT", default = 4 } }
[agents.writer]
parent = "reader"
tools = ["a"]
model.model = "small"
[agents.reader.plugins.listens]
[sections."a:b"]
order = 5
[agents.reader.contexts.c]
exclude = true
"""
PIECES = [
    *("[", "]", "{", "}", "=", ".", '"', "'", '"""', "\n", "\r", "\t", "#", "$env", "default", "\\", "\x00", "\ufeff"),
    *("true", "nan", "1e400", "0x1", "-", "1979-05-27", "07:32:00", "[[plugins]]", "[agents]", 'parent = "writer"\n'),
    *('{ "$env" = "HARNESS_TEST_LIMIT" }', "\u2028", "ü", "😀", '""', "scope = 'x'\n", "[prompt]\n", "a.b.c = 1\n"),
]


@settings(max_examples=max(300, settings.default.max_examples), deadline=None)
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(SEED)), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=4
    )
)
def test_a_changed_file_is_read_or_refused_with_places(
    edits: list[tuple[int, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = SEED
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    file = tmp_path_factory.getbasetemp() / "changed.toml"
    file.write_bytes(text.encode())
    none: list[PluginSource] = []
    try:
        documents = collect(file, lambda group: none)
        composition = structured(documents, {"HARNESS_TEST_LIMIT": "5"})
        composition.session.store = "memory"
        anyio.run(lambda: check_composition(composition, file.parent, documents, installed=INSTALLED))
    except CompositionError as error:
        lines = text.count("\n") + text.count("\r") + 1
        for problem in error.problems or (error,):
            assert problem.file == str(file)
            assert problem.line is None or 1 <= problem.line <= lines
            assert str(file) in problem.message
