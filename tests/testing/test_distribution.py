"""`harness plugin check`: what it finds in a distribution, each with its place and remedy, and how it answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from harness_core.cli._app import app
from harness_core.host import discover
from harness_core.host.findings import Finding
from harness_core.testing._declared import orders
from harness_core.testing._scene import Subject
from harness_core.testing.contract import CHECKS, run_check
from harness_core.testing.distribution import DISTRIBUTION_CHECKS, installed_plugins
from tests.testing.conftest import COMPLETE

GOOD = '''
    """The weather."""

    from attrs import define, field

    from harness_core import ToolSchema, hookimpl


    @define
    class Units:
        """Units. ``speed`` is that of the wind."""

        speed: str = "knots"


    @define
    class Config:
        """Settings of the weather plugin.

        Args:
            days: how far it looks ahead.
        """

        city: str = "Paris"
        """Where."""
        days: int = 3
        units: Units = field(factory=Units, metadata={"description": "In which units."})


    class Weather:
        Config = Config

        @hookimpl
        def harness_setup(self, ctx):
            ctx.prompt.section("weather:how", "Ask for the forecast first.", order=125)
            ctx.prompt.context("weather:now", f"{ctx.config.city}: sunny", order=-1.5)
            ctx.tools.register(ToolSchema("forecast", "The forecast."), lambda call: "sunny")
            yield
'''
README = "The section `weather:how` has order 125.\n| `weather:now` | -1.5 |\n"

Written = Callable[..., None]
Ran = Callable[..., Result]


def found_by(check: str, **options: Any) -> list[Finding]:
    """What one check finds in the plugin that a test has written."""
    [source] = installed_plugins("weather-plugin")
    function = {**CHECKS, **DISTRIBUTION_CHECKS}[check]
    return anyio.run(run_check, function, Subject(source=source, **options))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["plugin", "check", *words])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks that start interpreters, where a test is about the command."""
    monkeypatch.setattr("harness_core.testing.distribution._WITHOUT_IT", {"metadata": DISTRIBUTION_CHECKS["metadata"]})
    monkeypatch.delitem(DISTRIBUTION_CHECKS, "importing")
    monkeypatch.delitem(DISTRIBUTION_CHECKS, "hash-seeds")


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_good_distribution_passes_strictly_under_any_of_its_names(distribution: Written, command: Ran) -> None:
    distribution(GOOD, readme=README)
    ran = command("weather-plugin", "--strict")
    assert ran.output == "Checked plugin 'weather' (weather-plugin 1.0).\n0 errors, 0 warnings, 0 notes\n"
    assert ran.exit_code == 0
    assert [installed_plugins(name)[0].name for name in ("weather", "Weather_Plugin")] == ["weather", "weather"]


BAD = """
    import os
    from harness_core import hookimpl

    os.environ["WEATHER"] = "secret-value"

    class Weather:
        @hookimpl
        def harness_setup(self, ctx):
            ctx.harness.root.prompt.section("how", "Ask.", order=125)
"""


def test_what_it_finds_is_told_worst_first_with_details_and_remedy(
    distribution: Written, command: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    distribution(BAD, metadata="")
    ran = command("weather")
    assert ran.exit_code == 1
    assert (
        "error does-not-undo-itself: plugin 'weather' (weather-plugin 1.0) was installed and taken out again, and it is "
        "not as before.\n      sections: 'how' is still there\n          + Ask.\n"
    ) in ran.output
    assert "      environment variables: WEATHER\n    Do it in harness_setup, and undo it after the yield" in ran.output
    assert "secret-value" not in ran.output
    del os.environ["WEATHER"]
    said = command("weather", "--json")
    answer = json.loads(said.stdout)
    codes = [finding["code"] for finding in answer["findings"]]
    assert answer["plugins"] == [{"plugin": "weather", "distribution": "weather-plugin", "version": "1.0"}]
    assert {"does-not-undo-itself", "not-scoped", "import-effect", "incomplete-metadata", "undocumented-order"} <= {
        *codes
    }
    severities = [finding["severity"] for finding in answer["findings"]]
    assert severities == ["error"] * severities.count("error") + ["warning"] * severities.count("warning")
    assert len(set(severities)) == 2


@pytest.mark.usefixtures("quick")
def test_warnings_fail_only_strictly(distribution: Written, command: Ran) -> None:
    distribution(GOOD, readme="The weather.")
    assert [command("weather").exit_code, command("weather", "--strict").exit_code] == [0, 1]


NEEDY = """
    from attrs import define
    from harness_core import hookimpl

    @define
    class Config:
        city: str
        "Where."

    class Weather:
        Config = Config

        @hookimpl
        def harness_setup(self, ctx):
            ctx.prompt.variable("city", lambda context: ctx.config.city)
"""


@pytest.mark.usefixtures("quick")
def test_settings_that_it_cannot_do_without_come_from_a_file_or_the_composition(
    distribution: Written, command: Ran, tmp_path: Path
) -> None:
    distribution(NEEDY)
    ran = command("weather")
    assert ran.exit_code == 1
    assert "city: is missing and has no default" in ran.output
    assert "check it with some: --config FILE.toml" in ran.output
    (tmp_path / "settings.toml").write_text('city = "Rome"\n', encoding="utf-8")
    assert command("weather", "--strict", "--config", "settings.toml").exit_code == 0
    (tmp_path / "harness.toml").write_text('[plugins.weather.config]\ncity = "Rome"\n', encoding="utf-8")
    assert command("weather", "--strict").exit_code == 0


@pytest.mark.usefixtures("quick")
def test_several_plugins_take_one_table_each(distribution: Written, command: Ran, tmp_path: Path) -> None:
    distribution(NEEDY, plugins="weather = weather_plugin:Weather\nclimate = weather_plugin:Weather")
    settings = tmp_path / "settings.toml"
    settings.write_text('city = "Rome"\n', encoding="utf-8")
    ran = command("weather-plugin", "--config", "settings.toml")
    assert (ran.exit_code, "[climate], [weather]" in ran.output) == (1, True)
    settings.write_text("city =", encoding="utf-8")
    ran = command("weather-plugin", "--config", "settings.toml")
    assert (ran.exit_code, "settings.toml cannot be read" in ran.output) == (1, True)


def test_a_name_that_nobody_has_gets_the_nearest(distribution: Written, command: Ran) -> None:
    distribution(GOOD)
    ran = command("weather-plugn")
    assert ran.exit_code == 1
    assert "Did you mean 'weather-plugin'?" in ran.output
    assert command().exit_code == 2


# --- the single checks ------------------------------------------------------------------------------------------------

SETTINGS = '''
    from __future__ import annotations

    from typing import Any, Callable, ClassVar, Literal
    from attrs import define, field
    from harness_core import hookimpl

    class Station: ...

    @define
    class Region:
        """Holds others of its kind, and what no composition sets."""

        station: ClassVar[Station | None] = None
        inside: list[Region] = field(factory=list)
        found: Station | None = field(init=False, default=None)

    @define
    class Place:
        station: Station = field(factory=Station)

    @define
    class Lost:
        station: Nowhere | None = None

    {decorator}
    class Config:
        """Settings.{prose}"""

        {field}

    class Weather:
        Config = Config

        @hookimpl
        def harness_setup(self, ctx): ...
'''


@pytest.mark.parametrize(
    ("field", "codes"),
    [
        ('city: str = ""\n        "Where."', []),
        ('city: str = field(default="", metadata={"description": "Where."})', []),
        ('city: str = ""', ["undescribed-setting"]),
        ('city: str = ""\n        "  "', ["undescribed-setting"]),
        ('city: list[dict[str, int | None]] = field(factory=list)\n        "Where."', []),
        ('city: Literal["Paris", 3] = 3\n        "Where."', []),
        ('city: Any = None\n        "Where."', []),
        ('city: Station | None = None\n        "Where."', ["untyped-setting"]),
        ('city: list[Station] = field(factory=list)\n        "Where."', ["untyped-setting"]),
        ('city: list[Region] = field(factory=list)\n        "Where."', []),
        ('city: Place | None = None\n        "Where."', ["untyped-setting"]),
        ('city: Lost | None = None\n        "Where."', ["untyped-setting"]),
        ('city: Callable[[], str] | None = None\n        "Where."', ["untyped-setting"]),
        ('city = field(default=None)\n        "Where."', ["untyped-setting", "undescribed-setting"]),
        ('city = field(default="", init=False)', []),
    ],
)
def test_each_setting_has_a_type_and_a_description(distribution: Written, field: str, codes: list[str]) -> None:
    distribution(SETTINGS.format(decorator="@define(auto_attribs=None)", prose="", field=field))
    found = found_by("settings")
    assert [finding.code for finding in found] == codes
    assert {finding.entry for finding in found} <= {"city"}


@pytest.mark.parametrize(
    "prose", [" ``city`` is where.", "\n\n        Attributes:\n            city: where.\n        "]
)
def test_the_docstring_of_the_class_may_describe_its_settings(distribution: Written, prose: str) -> None:
    distribution(SETTINGS.format(decorator="@define", prose=prose, field='city: str = ""'))
    assert found_by("settings") == []


def test_a_config_of_another_kind_is_found(distribution: Written) -> None:
    distribution(SETTINGS.format(decorator="", prose="", field='city = ""'))
    [finding] = found_by("settings")
    assert (finding.code, "is no attrs class" in finding.message) == ("untyped-setting", True)


NAMED = """
    from harness_core import hookimpl

    class Weather:
        @hookimpl
        def harness_setup(self, ctx):
            ctx.prompt.{kind}("{name}", "Sunny.", order={order})
"""


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("weather", True),
        ("weather:now", True),
        ("weather.now", True),
        ("weather-plugin:now", True),
        ("weathering:now", False),
        ("now", False),
        ("sky:now", True),
    ],
)
def test_names_of_sections_and_contexts_carry_the_plugin_or_stand_in_the_readme(
    distribution: Written, name: str, passes: bool
) -> None:
    distribution(NAMED.format(kind="context", name=name, order=5), readme="Others rely on `sky:now`.")
    found = found_by("names")
    assert [finding.code for finding in found] == ([] if passes else ["unprefixed-name"])
    for finding in found:
        assert (finding.kind, finding.entry, finding.line) == ("context", name, 7)
        assert "Call it 'weather:now'" in finding.remedy


@pytest.mark.parametrize(
    ("order", "readme", "passes"),
    [
        ("5", "`weather:now` has order 5.", True),
        ("5.0", "`weather:now` has order 5.", True),
        ("-5", "weather:now (-5)", True),
        ("5", "weather:now (-5)", False),
        ("5", "`weather:now` has order 50.", False),
        ("5", "`weather:now` has order 1.5", False),
        ("5", "`weather:now`\nhas order 5.", False),
        ("0.5", "`weather:now` | 0.5 |", True),
        ("125", "`weather:now` | 125.0 |", True),
        ("1234567", "`weather:now` has order 1234567.", True),
        ("-5", "`weather:now` has order \u22125", True),
    ],
)
def test_the_readme_says_the_order_on_a_line_with_the_name(
    distribution: Written, order: str, readme: str, passes: bool
) -> None:
    distribution(NAMED.format(kind="section", name="weather:now", order=order), readme=readme)
    assert [finding.code for finding in found_by("orders")] == ([] if passes else ["undocumented-order"])


EFFECTS = {
    "print('hello')": "prints: hello",
    "open('weather.txt', 'w').close()": "writes a file: weather.txt",
    "threading.Thread(target=threading.Event().wait, name='w', daemon=True).start()": "threads: new: w",
    "socket.socket().close()": "makes a socket",
    "subprocess.run([sys.executable, '-c', ''])": "starts a process",
    "sys.path.append('weather')": "sys.path: new: weather",
    "logging.basicConfig()": "logging handlers: new: StreamHandler",
    "warnings.simplefilter('ignore')": "warning filters: new: ",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)": "signal handlers: SIGTERM",
    "os.environ['WEATHER'] = 'secret-value'": "environment variables: WEATHER",
    "os.chdir('/')": "the current directory: changed",
    "sys.excepthook = print": "sys.excepthook: changed",
}
IMPORTS = "import logging, os, signal, socket, subprocess, sys, threading, warnings\nopen(os.devnull, 'w').close()\n"


def test_importing_changes_nothing_around_it(distribution: Written) -> None:
    distribution(IMPORTS + "\n".join(EFFECTS) + "\nclass Weather: ...")
    [finding] = found_by("importing", slow=60.0)
    assert finding.code == "import-effect"
    details = finding.details or ""
    assert [effect for effect in EFFECTS.values() if effect not in details] == []
    assert "secret-value" not in details
    assert os.devnull not in details


def test_an_import_that_only_defines_things_changes_nothing(distribution: Written) -> None:
    distribution(IMPORTS + "class Weather: ...")
    assert found_by("importing", slow=60.0) == []


def test_a_slow_import_is_a_note(distribution: Written) -> None:
    distribution("import time\ntime.sleep(0.02)\nclass Weather: ...")
    [finding] = found_by("importing", slow=0.01)
    assert finding.code == "slow-import"
    assert finding.severity.value == "note"


def test_an_import_that_fails_in_a_fresh_interpreter_is_found(distribution: Written) -> None:
    distribution("import nowhere_to_be_found\nclass Weather: ...")
    [finding] = found_by("importing")
    assert finding.code == "plugin-failed"
    assert "No module named 'nowhere_to_be_found'" in (finding.details or "")


def test_what_hangs_on_the_order_of_a_set_is_found(distribution: Written) -> None:
    distribution("""
        from harness_core import hookimpl

        class Weather:
            @hookimpl
            def harness_setup(self, ctx):
                ctx.prompt.section("weather:all", " ".join({"sun", "rain", "snow", "hail", "fog", "wind"}), order=5)
    """)
    [finding] = found_by("hash-seeds")
    assert finding.code == "not-deterministic"
    assert (finding.details or "").startswith("sections: 'weather:all' of plugin 'weather' changed\n    - ")


CLASHING = """
    from harness_core import ToolSchema, hookimpl

    class Weather:
        @hookimpl
        def harness_setup(self, ctx):
            ctx.tools.register(ToolSchema("forecast", "The forecast."), lambda call: "sunny")

    Other = Weather
"""


def test_a_clash_with_another_installed_plugin_is_found_whoever_fails_of_it(distribution: Written) -> None:
    distribution(CLASHING)
    assert found_by("together") == []
    distribution(CLASHING, name="other-plugin", plugins="zebra = other_plugin:Other")
    [finding] = found_by("together")
    assert finding.code == "fails-together"
    assert "plugin 'zebra' fails" in finding.message
    assert "forecast" in finding.message


def test_what_harness_check_says_of_the_plugin_is_said_here(distribution: Written) -> None:
    unknown = NAMED.format(kind="section", name="weather:now", order=5).replace("Sunny.", "Sunny in {{city}}.")
    distribution(unknown)
    assert [finding.code for finding in found_by("together")] == ["unknown-variable"]


def test_what_harness_check_says_of_another_plugin_is_not(distribution: Written) -> None:
    distribution(CLASHING)
    other = NAMED.format(kind="section", name="other:now", order=5).replace("Sunny.", "Sunny in {{city}}.")
    distribution(other, name="other-plugin", plugins="zebra = other_plugin:Weather")
    assert found_by("together") == []


@pytest.mark.parametrize(
    ("options", "lack"),
    [
        ({"metadata": "Requires-Python: >=3.11\nRequires-Dist: pluggy-harness>=0.1\n"}, "no keyword 'pluggy-harness'"),
        ({"metadata": "Keywords: pluggy-harness\nRequires-Python: >=3.11\n"}, "no lowest version of pluggy-harness"),
        (
            {"metadata": "Keywords: pluggy-harness\nRequires-Python: >=3.11\nRequires-Dist: pluggy_harness<2\n"},
            "no lowest version of pluggy-harness",
        ),
        (
            {"metadata": COMPLETE.replace(">=0.1", '>=0.1; extra == "agents"')},
            "no lowest version of pluggy-harness",
        ),
        ({"metadata": "Keywords: a,pluggy-harness\nRequires-Dist: pluggy-harness~=0.1\n"}, "which Pythons"),
        ({"readme": ""}, "no long description"),
        ({"typed": False}, "no py.typed"),
    ],
)
def test_metadata_that_lack_something(distribution: Written, options: dict[str, Any], lack: str) -> None:
    distribution(GOOD, **options)
    [finding] = found_by("metadata")
    assert finding.code == "incomplete-metadata"
    assert lack in finding.message
    assert finding.plugin is None


@pytest.mark.parametrize(
    "requires",
    [
        "pluggy-harness>=0.1; python_version >= '3.11'",
        "pluggy-harness\nRequires-Dist: pluggy-harness>=0.1",
        "pluggy-harness<2\nRequires-Dist: pluggy-harness[all]>=0.1",
    ],
)
def test_a_lowest_version_counts_however_it_is_said(distribution: Written, requires: str) -> None:
    distribution(GOOD, metadata=COMPLETE.replace("pluggy-harness>=0.1", requires))
    assert found_by("metadata") == []


def test_a_part_of_a_namespace_package_has_its_own_marker(distribution: Written, tmp_path: Path) -> None:
    distribution("", typed=False, plugins="weather = weather_plugin.parts.sky:Weather")
    (tmp_path / "site" / "weather_plugin" / "__init__.py").unlink()
    folder = tmp_path / "site" / "weather_plugin" / "parts"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "sky.py").write_text("class Weather: ...", encoding="utf-8")
    [finding] = found_by("metadata")
    assert "no py.typed" in finding.message
    (folder / "py.typed").touch()
    assert found_by("metadata") == []


def test_without_a_distribution_there_are_no_metadata_to_lack_anything() -> None:
    from harness_core.host.discovery import source_of

    class Weather: ...

    subject = Subject(source=source_of(Weather))
    assert anyio.run(run_check, DISTRIBUTION_CHECKS["metadata"], subject) == []
    assert subject.description is None
    assert orders is DISTRIBUTION_CHECKS["orders"]


# --- our own ----------------------------------------------------------------------------------------------------------

OURS = sorted(
    {source.distribution or "" for source in discover() if (source.distribution or "").startswith("pluggy-harness-")}
)
SETTINGS_OF = {"pluggy-harness-agent-instructions": "max_bytes = 20000\n"}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="what a plugin declares is the same on every Python")
@pytest.mark.parametrize("name", OURS)
def test_our_own_plugins_keep_the_contract(name: str, command: Ran, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(SETTINGS_OF.get(name, ""), encoding="utf-8")
    given = ["--config", "settings.toml"] if name in SETTINGS_OF else []
    ran = command(name, "--strict", *given)
    assert ran.exit_code == 0, ran.output
