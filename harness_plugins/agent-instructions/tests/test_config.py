"""The settings: what is refused, what switches the plugin off, and where the user's folder is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from harness_agent_instructions import AgentInstructions, Config
from harness_agent_instructions.config import Settings

from harness_core import Harness
from harness_core.errors import PluginConfigError

pytestmark = pytest.mark.anyio


def settings(environ: dict[str, str] | None = None, **config: Any) -> Settings:
    return Settings.of(Config(**{"max_bytes": 1000, **config}), environ or {}, "/home/u")


@pytest.mark.spec("AGI-01")
@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({}, "max_bytes"),
        ({"max_bytes": "1"}, "max_bytes"),
        ({"max_bytes": True}, "max_bytes"),
        ({"max_bytes": 1, "max_source_bytes": 0}, "max_source_bytes"),
        ({"max_bytes": 1, "max_source_bytes": 1.5}, "max_source_bytes"),
        ({"max_bytes": 1, "instruction_file_candidates": "AGENTS.md"}, "instruction_file_candidates"),
        ({"max_bytes": 1, "home": 3}, "home"),
        ({"max_bytes": 1, "maxBytes": 1}, "maxBytes"),
    ],
)
async def test_what_does_not_fit_is_refused_by_its_key(config: dict[str, Any], path: str) -> None:
    async with Harness(autoload=False) as harness:
        with pytest.raises(PluginConfigError) as caught:
            await harness.install(AgentInstructions, config=config)
        assert path in (caught.value.names or ())
        assert path in str(caught.value)


@pytest.mark.spec("AGI-02")
@pytest.mark.parametrize("budget", [0, -1, 0.5, math.inf, -math.inf, math.nan])
async def test_without_a_usable_budget_it_loads_and_never_adds_anything(stage: Any, files: Any, budget: float) -> None:
    files.put("/p/AGENTS.md", "Be kind.")
    async with stage(max_bytes=budget) as it:
        await it.turn("one", ("read", "sub/x"))
        assert (it.told, it.waiting, files.probes) == ([], [], [])


@pytest.mark.spec("AGI-03")
async def test_without_a_file_system_it_loads_and_never_adds_anything(stage: Any, refuse: Any) -> None:
    async with stage(service=None) as it:
        await it.turn("one", ("read", "sub/x"))
        it.gate.decide = refuse
        await it.turn("two")
        assert (it.told, it.waiting) == ([], [])


@pytest.mark.spec("AGI-10")
def test_names_that_are_no_file_names_are_left_out() -> None:
    odd = ["", ".", "..", "a/b", "a\\b", "a\0b", "A.md", "A.md"]
    found = settings(instruction_file_candidates=odd, local_instruction_file_candidates=[*odd, "L.md"])
    assert found.candidates == ("A.md", "L.md")


@pytest.mark.spec("AGI-11", "AGI-12")
@pytest.mark.parametrize(
    ("configured", "environ", "home", "label"),
    [
        (None, {}, "/home/u/.harness", "~/.harness"),
        (None, {"HARNESS_HOME": "  "}, "/home/u/.harness", "~/.harness"),
        (None, {"HARNESS_HOME": "/etc/h"}, "/etc/h", "$HARNESS_HOME"),
        ("/opt/h", {"HARNESS_HOME": "/etc/h"}, "/opt/h", "$HARNESS_HOME"),
        (" ", {"HARNESS_HOME": "/etc/h"}, "/etc/h", "$HARNESS_HOME"),
        ("~", {}, "/home/u", "$HARNESS_HOME"),
        ("~/x/y", {}, "/home/u/x/y", "$HARNESS_HOME"),
        ("~\\x", {}, "/home/u/x", "$HARNESS_HOME"),
        ("~/.harness", {}, "/home/u/.harness", "~/.harness"),
        ("~other/x", {}, None, "$HARNESS_HOME"),
    ],
)
def test_the_users_folder(configured: str | None, environ: dict[str, str], home: str | None, label: str) -> None:
    found = settings(environ, home=configured)
    assert found.home_label == label
    assert found.home.startswith("/")
    assert home is None or found.home == home


def test_the_identity_covers_all_but_the_users_folder() -> None:
    first = settings()
    assert first.identity(".") == settings(home="/elsewhere").identity(".")
    assert first.identity(".") == settings(max_bytes=1000.0).identity(".")
    others = [
        settings(max_bytes=1001),
        settings(max_source_bytes=5),
        settings(project_root_markers=[".hg"]),
        settings(instruction_file_candidates=["CLAUDE.md", "AGENTS.md"]),
        settings(local_instruction_file_candidates=[]),
        settings(
            instruction_file_candidates=["AGENTS.md", "CLAUDE.md", "AGENTS.local.md"],
            local_instruction_file_candidates=["CLAUDE.local.md"],
        ),
    ]
    identities = {first.identity("."), first.identity(".."), *(other.identity(".") for other in others)}
    assert len(identities) == 8
