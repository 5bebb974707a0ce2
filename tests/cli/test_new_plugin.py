"""`harness new-plugin`: what it writes for every choice, and that it writes nothing where something is wrong."""

from __future__ import annotations

import ast
import itertools
import json
import os
import random
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, strategies as st

from harness_core.cli.new_plugin import new_plugin
from harness_core.scaffold import (
    HOOKS,
    LANES,
    LICENCES,
    Choices,
    ScaffoldError,
    checked_name,
    folder,
    project_files,
    write_folder,
)
from harness_core.scaffold.choices import IMPORTED, LONGEST, nearest_name
from harness_core.testing import FreshVenv

ONE_PYTHON = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="what is written does not depend on the Python that writes it"
)


def chosen(name: str = "weather", **choices: Any) -> Choices:
    return Choices(name=name, core="0.1.0", year=2026, **choices)


def begin(*arguments: str, into: Path, answers: str | None = None) -> Result:
    return CliRunner().invoke(new_plugin, [*arguments, "--into", str(into)], input=answers)


# --- what is written --------------------------------------------------------------------------------------------------


def combinations() -> st.SearchStrategy[Choices]:
    names = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,6}){0,3}", fullmatch=True).filter(
        lambda n: len(n) <= LONGEST
    )
    return st.builds(
        chosen,
        names | st.sampled_from(["config", "none", "true", "tool-call", "a" * LONGEST, "t-o-p-i-c", "x"]),
        description=st.text(max_size=80).filter(str.isprintable),
        author=st.text(max_size=30).filter(str.isprintable) | st.just("Ada <ada@example.org>"),
        licence=st.sampled_from(LICENCES),
        lanes=st.lists(st.sampled_from(LANES), min_size=1, unique=True),
        hooks=st.lists(st.sampled_from(HOOKS), unique=True),
        config=st.booleans(),
    )


def unused(source: str) -> set[str]:
    """Names that a module binds at its top, privately or by importing them, and never uses."""
    tree = ast.parse(source)
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.Assign):
            bound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    listed = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    known_to_others = {"annotations", "__all__", "pytestmark", "pytest_plugins", "test_contract"}
    return {name for name in bound - used - known_to_others if name not in listed}


@given(combinations())
def test_whatever_is_chosen_the_files_are_whole_and_nothing_in_them_is_unused(choices: Choices) -> None:
    files = project_files(choices)
    imported: set[str] = set()
    for path, text in files.items():
        assert text.endswith("\n") or path.endswith("py.typed")
        assert "\n\n\n\n" not in text
        if path.endswith(".py"):
            compile(text, path, "exec")
            assert unused(text) == set(), path
            imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
            imported |= {each.name for node in imports if node.module != choices.module for each in node.names}
    assert imported - {"annotations", choices.class_name, "Config"} <= IMPORTED | {"plugin_contract"}
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == f"harness-{choices.name}"
    assert project["entry-points"]["harness.plugins"] == {choices.name: f"{choices.module}:{choices.class_name}"}
    assert project["dependencies"][0] == "pluggy-harness>=0.1"
    assert (f"src/{choices.module}/config.py" in files) == choices.config
    assert ("LICENSE" in files) == (choices.licence != "none") == ("license" in project)
    assert choices.summary in files["README.md"]


@given(combinations())
def test_the_readme_names_every_order_and_every_key_and_its_settings_are_ones(choices: Choices) -> None:
    files = project_files(choices)
    plugin = files[f"src/{choices.module}/plugin.py"]
    readme = files["README.md"]
    orders = [line.partition(" = ")[2] for line in plugin.splitlines() if "_ORDER = " in line]
    rows = [[cell.strip() for cell in line.split("|")] for line in readme.splitlines() if line.startswith("| ")]
    assert sorted(orders) == sorted(row[2] for row in rows if row[2].isdigit())
    if choices.config:
        fields = ast.parse(files[f"src/{choices.module}/config.py"]).body[-1]
        assert isinstance(fields, ast.ClassDef)
        keys = [
            node.target.id
            for node in fields.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        ]
        assert keys
        block = readme.partition("```toml\n")[2].partition("```")[0]
        assert list(tomllib.loads(block)["plugins"][choices.name]["config"]) == keys
        assert all(f"| `{key}` |" in readme for key in keys)


def test_the_core_s_version_is_the_least_that_will_do() -> None:
    def least(core: str) -> str:
        files = project_files(attrs.evolve(chosen(), core=core))
        return str(tomllib.loads(files["pyproject.toml"])["project"]["dependencies"][0])

    assert least("2.3.4") == "pluggy-harness>=2.3"
    assert least("2.3.0.dev1") == "pluggy-harness>=2.3.0.dev1"  # no range without it would admit it


def test_description_author_and_licence_are_where_they_belong() -> None:
    files = project_files(
        chosen(description='What "they" say \\ mean', author="Ada Lovelace <ada@example.org>", licence="BSD-3-Clause")
    )
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["description"] == 'What "they" say \\ mean'
    assert project["authors"] == [{"name": "Ada Lovelace", "email": "ada@example.org"}]
    assert "Copyright (c) 2026 Ada Lovelace\n" in files["LICENSE"]
    nobody = project_files(chosen(licence="none"))
    assert "Private :: Do Not Upload" in tomllib.loads(nobody["pyproject.toml"])["project"]["classifiers"]
    assert "Apache License" in project_files(chosen(licence="Apache-2.0"))["LICENSE"]
    assert "the harness-weather authors" in project_files(chosen(author="<ada@example.org>"))["LICENSE"]
    assert chosen(description=" ", author="\t").summary == "The weather plugin for pluggy-harness"


# --- names and choices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("My Weather", "my-weather"),
        ("weather_now", "weather-now"),
        ("WeatherNow", "weather-now"),
        ("2fast", "plugin-2fast"),
        ("wetter-für-alle", "wetter-fur-alle"),
        ("pluggy-harness-weather", "weather"),
        ("weather-", "weather"),
        ("a" * (LONGEST + 1), "a" * LONGEST),
        ("../weather", "weather"),
    ],
)
def test_a_bad_name_is_refused_with_the_nearest_that_is_one(given: str, near: str) -> None:
    with pytest.raises(ScaffoldError) as caught:
        checked_name(given)
    assert repr(near) in str(caught.value)
    assert checked_name(near) == near


@pytest.mark.parametrize("given", ["", "???", "-"])
def test_a_name_of_which_nothing_can_be_kept_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(ScaffoldError, match="such as weather"):
        checked_name(given)


@given(st.text())
def test_the_nearest_name_is_always_one(text: str) -> None:
    near = nearest_name(text)
    assert near is None or checked_name(near) == near


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("big-weather", "BigWeather"),
        ("tool-call", "ToolCallPlugin"),
        ("config", "ConfigPlugin"),
        ("none", "NonePlugin"),
        ("warning", "WarningPlugin"),
        ("t-o-p-i-c", "TOPICPlugin"),
    ],
)
def test_a_class_is_not_called_like_something_else_in_its_module(name: str, class_name: str) -> None:
    assert chosen(name).class_name == class_name


def test_the_prefix_of_distributions_may_be_said() -> None:
    assert checked_name("harness-weather") == "weather"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["My Weather"], "'my-weather' would be one"),
        (["weather", "--lanes", "sections"], "Did you mean 'section'"),
        (["weather", "--hooks", "pre_step,tool_call"], "Did you mean 'agent_pre_step'"),
        (["weather", "--lanes", "none", "--hooks", "none"], "would do nothing"),
        (["weather", "--licence", "mine"], "'mine' is not one of"),
        (["weather", "--description", "two\nlines"], "one line"),
        ([], "Missing argument 'NAME'"),
    ],
)
def test_wrong_usage_exits_with_2_and_writes_nothing(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = begin(*arguments, into=tmp_path)
    assert done.exit_code == 2
    assert says in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("time-context", "A plugin called 'time-context' is installed (pluggy-harness-time"),
        ("time", "A module 'harness_time' is installed"),
        ("core", "A module 'harness_core' is installed"),
    ],
)
def test_a_name_that_something_installed_has_is_refused(tmp_path: Path, name: str, says: str) -> None:
    done = begin(name, into=tmp_path)
    assert done.exit_code == 1
    assert says in done.output
    assert not list(tmp_path.iterdir())


# --- the folder -------------------------------------------------------------------------------------------------------


def test_it_takes_defaults_without_a_terminal_and_says_what_it_wrote(tmp_path: Path) -> None:
    done = begin("weather", into=tmp_path)
    assert done.exit_code == 0, done.output
    target = tmp_path / "harness-weather"
    written = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert [line.strip() for line in done.stdout.splitlines()[1 : 1 + len(written)]] == written
    assert [path.name for path in tmp_path.iterdir()] == ["harness-weather"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o777 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_json_tells_what_was_written(tmp_path: Path) -> None:
    said = json.loads(begin("big-weather", "--json", "--lanes", "context", "--no-config", into=tmp_path).stdout)
    assert said["plugin"] == "big-weather"
    assert said["module"] == "harness_big_weather"
    assert said["class"] == "BigWeather"
    assert said["files"] == sorted(project_files(chosen("big-weather", lanes=["context"], config=False)))
    assert all((Path(said["folder"]) / name).is_file() for name in said["files"])
    refused = begin("big-weather", "--json", into=tmp_path)
    assert (refused.exit_code, json.loads(refused.stdout)["error"]["code"]) == (1, "scaffold")


def test_on_a_terminal_it_asks_for_what_is_not_said_and_again_for_what_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_core.cli.new_plugin._on_terminal", lambda: True)
    answers = ["My Weather", "weather", "", "sections", "variable", "agent_pre_step, agent_status", "n"]
    done = begin("--author", "Ada", "--licence", "MIT", into=tmp_path, answers="\n".join(answers) + "\n")
    assert done.exit_code == 0, done.output
    assert "'my-weather' would be one" in done.output
    assert "Did you mean 'section'" in done.output
    assert "Author" not in done.output
    target = tmp_path / "harness-weather"
    expected = project_files(
        chosen(author="Ada", lanes=["variable"], hooks=["agent_pre_step", "agent_status"], config=False)
    )
    assert (target / "src/harness_weather/plugin.py").read_text() == expected["src/harness_weather/plugin.py"]


def test_it_never_waits_for_an_answer_where_there_is_no_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness_core.cli", "new-plugin"]
    read, write = os.pipe()  # nobody ever writes to it: a question would be waited for
    try:
        done = subprocess.run(
            [*command, "weather"], stdin=read, cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
    finally:
        os.close(read)
        os.close(write)
    assert done.returncode == 0, done.output
    assert (tmp_path / "harness-weather" / "pyproject.toml").is_file()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_there_already_is_left_alone(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "harness-weather"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
        (target / "mine").touch()
    else:
        target.symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    done = begin("weather", into=tmp_path)
    assert done.exit_code == 1
    assert "exists and is" in done.output
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_is_taken_and_a_missing_one_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "harness-weather").mkdir()
    assert begin("weather", into=tmp_path).exit_code == 0
    done = begin("weather", into=tmp_path / "absent")
    assert done.exit_code == 1
    assert "no folder" in done.output


def test_nothing_is_left_of_what_fails_half_way(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="could not be written"):
        write_folder(tmp_path / "harness-weather", {"a": "1", "a/b": "a file is no folder"})
    assert not list(tmp_path.iterdir())


def test_whoever_was_quicker_keeps_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "harness-weather"

    def check_and_lose(place: Path) -> None:
        place.mkdir()
        (place / "theirs").touch()

    monkeypatch.setattr(folder, "check_writable", check_and_lose)
    with pytest.raises(ScaffoldError, match="could not be written"):
        write_folder(target, {"mine": ""})
    assert [path.name for path in tmp_path.rglob("*")] == ["harness-weather", "theirs"]


# --- what is written works --------------------------------------------------------------------------------------------


def pairwise() -> Iterator[Choices]:
    """Choices in which every two of lanes, hooks and settings occur together in each of the four ways."""
    factors = ["config", *LANES, *HOOKS]
    luck = random.Random(1)
    missing = {
        pair
        for a, b in itertools.combinations(factors, 2)
        for pair in itertools.product(((a, 0), (a, 1)), ((b, 0), (b, 1)))
    }

    def covered(row: dict[str, int]) -> set[Any]:
        return {pair for pair in missing if all(row[name] == value for name, value in pair)}

    for number in itertools.count():
        if not missing:
            return
        tried = ({name: luck.randrange(2) for name in factors} for _ in range(200))
        row = max(
            (each for each in tried if any(each[name] for name in factors[1:])), key=lambda each: len(covered(each))
        )
        missing -= covered(row)
        lanes, hooks = ([name for name in known if row[name]] for known in (LANES, HOOKS))
        yield chosen(f"number-{number}", lanes=lanes, hooks=hooks, config=bool(row["config"]))


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder for each choice of `pairwise`, and two with names of the shortest and longest kind."""
    top = tmp_path_factory.mktemp("projects")
    everything = {"lanes": LANES, "hooks": HOOKS}
    ends = [chosen("x", **everything), chosen("a" * LONGEST, **everything, config=False)]
    made = []
    for choices in [*ends, *pairwise()]:
        made.append(top / choices.distribution)
        write_folder(made[-1], project_files(choices))
    return made


@pytest.fixture(scope="module")
def environment(projects: list[Path], tmp_path_factory: pytest.TempPathFactory) -> FreshVenv:
    """An environment in which the first two are installed, as a stranger would have them."""
    made = FreshVenv(tmp_path_factory.mktemp("environment"), offline=True)
    made.install(*projects[:2])
    return made


@ONE_PYTHON
def test_a_formatter_and_a_linter_have_nothing_to_say(projects: Sequence[Path]) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    for command in ([*ruff, "format", "--no-cache", "--diff"], [*ruff, "check", "--no-cache"]):
        done = subprocess.run([*command, *map(str, projects)], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.output


@ONE_PYTHON
def test_types_are_checked_strictly(projects: Sequence[Path], environment: FreshVenv, tmp_path: Path) -> None:
    first, second, *_ = projects
    (tmp_path / "test_second.py").write_text((second / "tests" / "test_plugin.py").read_text())  # one module of a name
    paths = ["src", "tests", str(second / "src"), str(tmp_path / "test_second.py")]
    done = environment.run("-m", "mypy", "--cache-dir", str(tmp_path / "cache"), *paths, cwd=first)
    assert done.returncode == 0, done.stdout + done.stderr


@ONE_PYTHON
def test_its_tests_pass(projects: Sequence[Path], environment: FreshVenv) -> None:
    done = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=projects[0])
    assert done.returncode == 0, done.stdout + done.stderr
    # The others in one go: each has a conftest.py and a test_plugin.py, which only this mode of importing keeps apart.
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", str(projects[0] / "pyproject.toml")]
    sources = " ".join(str(project / "src") for project in projects[2:])
    tests = [str(project / "tests") for project in projects[1:]]
    done = environment.run("-m", "pytest", *options, "-o", f"pythonpath={sources}", *tests)
    assert done.returncode == 0, done.stdout + done.stderr


@ONE_PYTHON
def test_every_setting_in_the_readme_is_accepted(
    projects: Sequence[Path], environment: FreshVenv, tmp_path: Path
) -> None:
    [readme, *_] = [project / "README.md" for project in projects]
    file = tmp_path / "harness.toml"
    file.write_text("autoload = false\n" + readme.read_text().partition("```toml\n")[2].partition("```")[0])
    done = environment.run("harness", "check", "--strict", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.output


@ONE_PYTHON
def test_the_contract_of_plugins_holds(projects: Sequence[Path], environment: FreshVenv, tmp_path: Path) -> None:
    for project in projects[:2]:
        done = environment.run("harness", "plugin", "check", project.name, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        codes = {each["code"] for each in json.loads(done.stdout)["findings"]}
        # Their sections have the same order, as nobody has changed it yet; and imports are slow on a busy machine.
        assert codes <= {"tied-orders", "slow-import"}, done.stdout
