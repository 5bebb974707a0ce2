"""Plugins of third parties as real wheels: installed, upgraded, broken and removed, and what is reported of each state."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.wheels._world import GOOD, World

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="installs with pip, which takes long, and does not depend on the version"
)

LABEL = "plugin 'weather' (acme-weather {})"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("wheels"))
    world.install("0.1")
    assert world.reports("lock")[0].code == 0
    world.keep_lock()
    return world


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    shared.start()
    yield shared
    # What was damaged by hand is nothing that pip would take out.
    for path in shared.venv.folder.glob("lib/*/site-packages/*_weather*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_an_upgrade_is_told_with_lane_plugin_version_and_what_it_does_to_the_cache(world: World) -> None:
    world.install("1.0")
    plugins, check, lock, same, hooks = world.reports("plugins --json", "check", "lock", "lock --check", "hooks")
    assert world.statuses(plugins)["acme-weather"] == {
        "name": "weather",
        "state": "active",
        "listed": False,
        "distribution": "acme-weather",
        "version": "1.0",
        "entry_point": "acme_weather:Weather",
        "scope": "global",
        "places": {"agent_pre_step": 1},
        "contributes": {
            "sections": ["weather:how", "weather:tone"],
            "contexts": ["weather:sky"],
            "tools": ["forecast"],
        },
    }
    assert (check.code, check.text) == (0, "0 errors, 0 warnings, 0 notes")
    assert (lock.code, same.code, same.text) == (0, 0, "Nothing changed.")
    assert "weather (acme-weather 1.0)" in hooks.text and "acme_weather.py:" in hooks.text

    world.install("1.1", GOOD.replace("order=50", "order=40"))
    changed, diff = world.reports("lock --check", "diff")
    assert (changed.code, changed.out) == (1, diff.out)
    assert "changed plugin 'weather' -1.0 +1.1" in changed.text
    assert "changed context 'weather:sky' of weather 1.1 in scope global" in changed.text
    assert '- "order": 50, + "order": 40,' in changed.text
    assert "section" not in changed.text and "cache breaks" not in changed.text

    world.install("2.0", GOOD.replace("weather:tone", "weather:manner").replace("order=20", "order=35"))
    changed, hooks = world.reports("lock --check", "hooks")
    assert changed.code == 1
    assert "changed plugin 'weather' -1.0 +2.0" in changed.text
    assert "removed section 'weather:tone' of weather 2.0 in scope global -Be cheerful." in changed.text
    assert "added section 'weather:manner' of weather 2.0 in scope global +Be cheerful." in changed.text
    assert "The prefix cache breaks in: global." in changed.text
    assert "weather (acme-weather 2.0)" in hooks.text


BROKEN = {
    "import": (
        "import absent_thing\n" + GOOD,
        {},
        "could not be imported from acme_weather:Weather: ModuleNotFoundError: No module named 'absent_thing'.",
        "Repair or remove the distribution 'acme-weather', or disable the plugin. [plugin-load]",
    ),
    "signature": (
        GOOD.replace("def agent_pre_step(self, step)", "def agent_pre_step(self, step, mood)"),
        {},
        "Argument(s) {'mood'} are declared in the hookimpl but can not be found in the hookspec",
        "A hook implementation takes any subset of the hook's arguments, under their own names. [plugin-spec]",
    ),
    "hook": (
        GOOD.replace("def agent_pre_step(", "def agent_pre_stepp("),
        {},
        "there is no hook called 'agent_pre_stepp'",
        "Did you mean agent_pre_step? [plugin-spec]",
    ),
    "core": (
        GOOD,
        {"requires": "pluggy-harness>=99"},
        "requires pluggy-harness>=99, but pluggy-harness 0.1.0 is installed; it was not imported.",
        "Install a version of 'acme-weather' that fits, or change the core's version. [plugin-load]",
    ),
    "target": (
        GOOD,
        {"entry": "acme weather::Weather"},
        "cannot be imported: its entry point leads to 'acme weather::Weather'.",
        "In the distribution 'acme-weather', write it as weather = \"package.module:Class\". [plugin-load]",
    ),
    "nothing": (
        GOOD,
        {"entry": "acme_weather:Wether"},
        "AttributeError: module 'acme_weather' has no attribute 'Wether'.",
        "Repair or remove the distribution 'acme-weather', or disable the plugin. [plugin-load]",
    ),
}


@pytest.mark.parametrize(("code", "options", "reason", "remedy"), BROKEN.values(), ids=BROKEN)
def test_a_broken_version_is_told_with_its_reason_and_a_remedy(
    world: World, code: str, options: dict[str, str], reason: str, remedy: str
) -> None:
    world.install("3.0", code, **options)
    plugins, check, *others = world.reports("plugins --json", "check", "lock --check", "diff", "hooks")
    status = world.statuses(plugins)["acme-weather"]
    assert (status["state"], status["version"]) == ("failed", "3.0")
    told = [str(status["why"]), check.text, *(other.err for other in others)]
    for text in told:
        assert LABEL.format("3.0") in text and reason in text and remedy in text
    assert [report.code for report in (check, *others)] == [1] * 4
    assert check.text.startswith("error plugin-failed: weather is left out: ")
    assert "1 error, 0 warnings, 0 notes" in check.text


@pytest.mark.parametrize(
    ("line", "reason"),
    [("Name: acme-weather\n", "METADATA has no Name"), ("Version: 4.0\n", "METADATA has no Version"), (None, "METADATA ")],
    ids=["name", "version", "file"],
)  # fmt: skip
def test_damaged_metadata_is_told_of_the_distribution_that_has_it(world: World, line: str | None, reason: str) -> None:
    world.install("4.0")
    file = world.metadata()
    if line is None:
        file.unlink()
    else:
        before = file.read_text(encoding="utf-8")
        file.write_text(before.replace(line, ""), encoding="utf-8")
    plugins, check, hooks = world.reports("plugins --json", "check", "hooks")
    status = world.statuses(plugins)["acme-weather"]
    assert (status["state"], status["version"]) == ("failed", "4.0")
    wanted = f"{LABEL.format('4.0')} was not imported: the metadata of its distribution is damaged: {reason}"
    for text in (str(status["why"]), check.text, hooks.err):
        assert wanted in text and "Install the distribution again, or remove it." in text
    assert (check.code, hooks.code) == (1, 1)


def test_one_damaged_list_of_entry_points_hides_no_others(world: World) -> None:
    world.install("5.0")
    world.install("1.0", GOOD, name="bold-weather")
    world.metadata("entry_points.txt").write_text("[harness.plugins]\nweather\n", encoding="utf-8")
    plugins, check = world.reports("plugins --json", "check")
    assert {name: each["state"] for name, each in world.statuses(plugins).items()} == {"bold-weather": "active"}
    assert "The entry points of acme-weather 5.0 cannot be read" in plugins.err
    assert "it offers nothing. Install it again, or remove it." in check.err
    assert check.code == 0


@pytest.mark.spec("UC-06")
def test_of_two_distributions_that_offer_one_name_both_are_told(world: World) -> None:
    world.install("1.0")
    world.install("7.0", GOOD, name="bold-weather")
    plugins, check, hooks = world.reports("plugins --json", "check", "hooks")
    statuses = world.statuses(plugins)
    assert [(name, each["state"]) for name, each in statuses.items()] == [
        ("acme-weather", "active"),
        ("bold-weather", "failed"),
    ]
    for text in (str(statuses["bold-weather"]["why"]), check.text, hooks.err):
        assert "already registered globally by plugin 'weather' (acme-weather 1.0)" in text
        assert "registered again by plugin 'weather' (bold-weather 7.0)" in text
    assert "contributes" not in statuses["bold-weather"], "nothing of it is left"
    assert (check.code, hooks.code) == (1, 1)

    world.compose("[plugins.weather]\n")
    plugins, check = world.reports("plugins --json", "check")
    status = world.statuses(plugins)["bold-weather"]
    assert (status["state"], status["why"]) == (
        "not loaded",
        "acme-weather 1.0 offers a plugin of the same name, and that one is taken",
    )
    assert check.code == 0


def test_listed_but_not_installed_and_installed_but_not_listed_are_told_apart(world: World) -> None:
    world.compose("autoload = false\n[plugins.weather]\n")
    world.install("1.0")
    assert world.reports("lock")[0].code == 0
    world.uninstall("acme-weather")
    plugins, check, *others = world.reports("plugins --json", "check", "lock --check", "diff", "hooks")
    assert world.statuses(plugins) == {
        None: {
            "name": "weather",
            "state": "not installed",
            "listed": True,
            "why": "it is named, but no installed distribution offers it",
            "remedy": "Install the distribution with pip, or remove the table.",
        }
    }
    assert check.code == 1
    assert "not-installed: plugins.weather: no installed distribution offers a plugin called 'weather'." in check.out
    assert "Install it with pip, or remove the table." in check.out
    for report in others:
        assert report.code == 1
        told = report.out + report.err
        assert "No installed distribution offers a plugin called 'weather'." in told
        assert "Install it with pip, or remove the name." in told

    world.compose("autoload = false\n")
    world.install("1.0")
    plugins, check, changed, hooks = world.reports("plugins --json", "check", "lock --check", "hooks")
    status = world.statuses(plugins)["acme-weather"]
    assert (status["state"], status["listed"]) == ("not loaded", False)
    assert status["why"] == "it is not named, and others are not loaded (autoload = false, or HARNESS_PLUGINS)"
    assert (check.code, hooks.code, hooks.text) == (0, 0, "Nobody listens to any hook.")
    assert changed.code == 1
    assert "removed plugin 'weather' -1.0" in changed.text
    assert "The prefix cache breaks in: global." in changed.text

    world.compose("autoload = false\n[plugins.wether]\n")
    assert "Did you mean 'weather'?" in world.reports("check")[0].out
