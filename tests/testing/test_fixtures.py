"""The kit as a pytest plugin, in test suites of authors: with pytest-asyncio in both modes, with anyio, and with neither."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.testing import CHECKS

TESTS = """
import anyio
import pytest
from harness_core import PluginContext, ToolSchema, hookimpl
from harness_core.session import UserMessageLogged
from harness_core.testing import FakeClock, FailureFacts, ScriptedAnswer, assert_undoes_itself, plugin_contract

{mark}

class Weather:
    @hookimpl
    def harness_setup(self, ctx: PluginContext):
        ctx.prompt.section("weather:how", "Ask for the forecast.", order=120)
        ctx.tools.register(ToolSchema("forecast", "The forecast."), lambda call: "sunny")
        yield

{decorator}
async def test_harness_and_session(harness, session, fake_clock):
    async with harness(Weather) as running:
        step = await running.prepare_step(session, ["Hello."])
        assert step.system == "Ask for the forecast."
        assert running.agents.settings.clock() == fake_clock()
    assert session.created_at_ms == fake_clock()

{decorator}
async def test_agent(agent, scripted_model, fake_clock, tmp_path):
    scripted_model.add(ScriptedAnswer(calls=[("forecast", {{}})], delay=2.5), "Sunny.")
    began = fake_clock()
    async with agent(Weather) as it:
        result = await it.run("How is the weather?")
        assert it.session.cwd == str(tmp_path)
    assert result.text == "Sunny."
    assert fake_clock() - began == 2500 * len(fake_clock.slept) > 0
    assert [message.text for message in scripted_model.requests[1].messages][-1] == "sunny"

{decorator}
async def test_failure(agent, scripted_model):
    scripted_model.add(FailureFacts(code="OVERLOADED", message="Too many."))
    async with agent() as it:
        result = await it.run("Hello.")
    assert result.failure.code == "OVERLOADED"

{decorator}
async def test_assertion():
    await assert_undoes_itself(Weather)

test_contract = plugin_contract(Weather)

def test_sync():
    anyio.run(assert_undoes_itself, Weather)
"""

CONFTEST = 'pytest_plugins = ["harness_core.testing"]\n'
BACKENDS = """
import pytest

@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param
"""


def suite(
    folder: Path, *options: str, ini: str = "", conftest: str = CONFTEST, mark: str = "", decorator: str = ""
) -> str:
    """Run the tests as an author would, warnings as errors; what pytest says."""
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}", encoding="utf-8")
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "test_weather.py").write_text(TESTS.format(mark=mark, decorator=decorator), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


ALWAYS = len(CHECKS) + 1
"""The checks of the contract, and the synchronous test."""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_with_pytest_asyncio(mode: str, tmp_path: Path) -> None:
    pytest.importorskip("pytest_asyncio")
    ini = f"asyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n"
    decorator = "@pytest.mark.asyncio" if mode == "strict" else ""
    assert f"{4 + ALWAYS} passed" in suite(tmp_path, ini=ini, decorator=decorator)


def test_with_anyio_on_both_backends(tmp_path: Path) -> None:
    out = suite(tmp_path, "-p", "no:asyncio", conftest=CONFTEST + BACKENDS, mark="pytestmark = pytest.mark.anyio")
    assert f"{8 + ALWAYS} passed" in out


def test_with_the_option_of_the_command_line_and_assertions_rewritten_before(tmp_path: Path) -> None:
    """The kit may have been imported before pytest asks for it; that is no warning."""
    out = suite(
        tmp_path,
        "-p",
        "no:asyncio",
        "-p",
        "harness_core.testing",
        conftest="import harness_core.testing\n",
        mark="pytestmark = pytest.mark.anyio",
    )
    assert "passed" in out


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_nothing_loads_pytest_but_what_needs_it() -> None:
    assert "pytest" not in modules_after("import harness_core, harness_core.testing")
    names = "FakeClock, ScriptedModel, assert_scoped, contract_findings, run_in_fresh_venv"
    loaded = modules_after(f"from harness_core.testing import {names}")
    assert not {"pytest", "_pytest", "click", "rich"} & loaded
    assert "harness_core.testing.contract" not in modules_after(
        "from harness_core.testing import FakeClock, ScriptedModel"
    )


def test_every_public_name_is_there() -> None:
    import harness_core.testing

    for name in harness_core.testing.__all__:
        assert getattr(harness_core.testing, name).__name__ == name if name != "CHECKS" else True
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        harness_core.testing.nothing  # noqa: B018
