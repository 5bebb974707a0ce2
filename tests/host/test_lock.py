"""The lock: what the model gets, under review; what an upgrade changes is told by lane, plugin and version."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness_core import Harness, PluginContext, PromptSettings, ToolSchema, hookimpl
from harness_core.errors import CompositionError
from harness_core.host import PluginSource
from harness_core.host.lock import Change, differences, lock_of, read_lock, write_lock

pytestmark = pytest.mark.anyio

counter = itertools.count()


@attrs.define
class Release:
    """One version of a third party's plugin."""

    version: str = "1.0"
    text: str = "Ask first."
    order: float = 120
    parameters: dict[str, Any] = attrs.field(factory=lambda: {"type": "object"})
    extra: bool = False

    def source(self) -> PluginSource:
        release = self

        class Weather:
            @hookimpl
            def harness_setup(self, ctx: PluginContext) -> None:
                ctx.prompt.section("weather:how", release.text, order=release.order)
                ctx.prompt.section("weather:more", "More.", order=130)
                ctx.prompt.context("weather:now", lambda _: f"reading {next(counter)}", order=1)
                ctx.prompt.variable("weather_city", lambda _: str(next(counter)))
                ctx.tools.register(ToolSchema("forecast", "For a city.", release.parameters), lambda call: "")
                if release.extra:
                    ctx.prompt.context("weather:extra", "x", order=2)

        return PluginSource(name="weather", distribution="harness-weather", version=self.version, load=lambda: Weather)


async def locked(release: Release) -> dict[str, Any]:
    async with Harness(PromptSettings("P", identity=False), autoload=False) as harness:
        await harness.install(release.source())
        return await lock_of(harness, [harness.root, harness.scope("agent")])


async def test_nothing_changes_by_itself_although_contexts_and_variables_do(tmp_path: Path) -> None:
    first = await locked(Release())
    write_lock(tmp_path / "lock.json", first)
    assert differences(read_lock(tmp_path / "lock.json"), await locked(Release())) == []
    assert "reading" not in (tmp_path / "lock.json").read_text()
    assert list(first["scopes"]) == ["global", "agent"]


@pytest.mark.parametrize(
    ("change", "lane", "what", "breaks"),
    [
        ({"text": "Ask twice."}, "sections", "changed", True),
        ({"order": 140}, "sections", "moved", True),
        ({"parameters": {"type": "object", "required": []}}, "tools", "changed", True),
        ({"extra": True}, "contexts", "added", False),
    ],
)
async def test_an_upgrade_is_told_by_lane_plugin_and_version(
    change: dict[str, Any], lane: str, what: str, breaks: bool
) -> None:
    changes = differences(await locked(Release()), await locked(Release("2.0", **change)))
    assert changes[0] == Change(
        scope="",
        lane="plugins",
        name="weather",
        what="changed",
        before="1.0",
        after="2.0",
        plugin="weather",
        version="2.0",
    )
    [found] = [each for each in changes if each.scope == "global" and each.what == what]
    assert (found.lane, found.plugin, found.version, found.breaks_prefix) == (lane, "weather", "2.0", breaks)
    assert {each.lane for each in changes if each.scope} == {lane}


async def test_a_removed_plugin_takes_its_parts_and_adds_none() -> None:
    async with Harness(PromptSettings("P", identity=False), autoload=False) as harness:
        bare = await lock_of(harness, [harness.root])
    changes = differences(await locked(Release()), bare)
    assert {each.what for each in changes} == {"removed"}
    assert {each.name for each in changes if each.lane == "tools"} == {"forecast"}


@pytest.mark.parametrize("content", [None, "{", "[]", '{"format": 99}'])
def test_what_is_no_lock_is_refused_by_name(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "lock.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CompositionError) as caught:
        read_lock(path)
    assert caught.value.file == str(path)
