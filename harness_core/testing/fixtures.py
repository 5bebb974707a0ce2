"""The fixtures of the test kit, all of them synchronous: the test enters what they hand out, in whatever loop it runs.

Loaded by pytest through ``pytest_plugins = ["harness_core.testing"]``. PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_core.models import ScriptedModel
from harness_core.session import Session
from harness_core.testing.clock import FakeClock
from harness_core.testing.stage import AgentFactory, HarnessFactory, Stage

__all__ = ["agent", "fake_clock", "harness", "harness_stage", "scripted_model", "session"]


@pytest.fixture
def fake_clock() -> FakeClock:
    """The time of the test's harnesses."""
    return FakeClock()


@pytest.fixture
def scripted_model(fake_clock: FakeClock) -> ScriptedModel:
    """The model of the test's agents: ``scripted_model.add(...)`` scripts answers, ``requests`` holds what was asked."""
    return ScriptedModel(sleep=fake_clock.sleep)


@pytest.fixture
def harness_stage(tmp_path: Path, fake_clock: FakeClock, scripted_model: ScriptedModel) -> Stage:
    """What the other fixtures share."""
    return Stage(tmp_path, fake_clock, scripted_model)


@pytest.fixture
def harness(harness_stage: Stage) -> HarnessFactory:
    """``async with harness(Weather, config={...}) as running:`` - a harness with these plugins alone."""
    return harness_stage.harness


@pytest.fixture
def agent(harness_stage: Stage) -> AgentFactory:
    """``async with agent(Weather) as it:`` - an agent on a temporary folder that ``scripted_model`` answers."""
    return harness_stage.agent


@pytest.fixture
def session(harness_stage: Stage) -> Iterator[Session]:
    """A session with its log in a temporary folder, closed at the end of the test."""
    opened = harness_stage.session()
    yield opened
    opened.close()
