"""What comes from the environment is shown nowhere, whatever plugins do with it when they fail."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness_core import HarnessError, PluginContext, hookimpl
from harness_core.cli._sarif import as_sarif
from harness_core.errors import CompositionError
from harness_core.host import PluginSource
from harness_core.host.check_composition import check_composition
from harness_core.host.documents import collect
from harness_core.host.inventory import inventory
from harness_core.host.reading import structured
from harness_core.host.references import concealed, resolve
from harness_core.host.stores import open_store
from tests.host.test_applying import harness_of

pytestmark = pytest.mark.anyio

SECRET = "tops3cret'\"\nvalue"
REFERENCE = {"$env": "HARNESS_TEST_SECRET"}


@pytest.fixture(autouse=True)
def _set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_TEST_SECRET", SECRET)


@attrs.define
class Token:
    token: str = ""


def _quotes(instance: Any, attribute: Any, value: str) -> None:
    raise ValueError(f"{value!r} is no token")


@attrs.define
class Validated:
    token: str = attrs.field(default="", validator=_quotes)


def _raises(ctx: PluginContext) -> None:
    raise ValueError(f"401 for {ctx.config.token}")


def _raises_below(ctx: PluginContext) -> None:
    try:
        raise KeyError(ctx.config.token)
    except KeyError:
        raise ValueError("no access") from None


def _raises_with_cause(ctx: PluginContext) -> None:
    try:
        raise KeyError(ctx.config.token)
    except KeyError as error:
        raise ValueError("no access") from error


def _registers(ctx: PluginContext) -> None:
    ctx.prompt.section(ctx.config.token, "x", order=1)
    ctx.prompt.section(ctx.config.token, "x", order=1)


def _registers_a_variable(ctx: PluginContext) -> None:
    ctx.prompt.variable(f"not a name {ctx.config.token}", lambda _: "")


def _clings(ctx: PluginContext) -> None:
    token = ctx.config.token

    def fails() -> None:
        raise OSError(f"cannot log out {token}")

    ctx.effects.callback(fails)
    raise ValueError("no access")


def _fails_later(ctx: PluginContext) -> None:
    token = ctx.config.token

    def fails(context: Any) -> str:
        raise ValueError(f"401 for {token!r}")

    ctx.prompt.section("x:s", fails, order=1)


def made(set_up: Callable[[PluginContext], None], kind: type) -> PluginSource:
    class Plugin:
        Config = kind

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            set_up(ctx)

    return PluginSource(name="x", distribution="dist-x", version="1", load=lambda: Plugin)


class Bare:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        raise AssertionError


CASES = {
    "raised": (made(_raises, Token), "config.token"),
    "raised with a context": (made(_raises_below, Token), "config.token"),
    "raised with a cause": (made(_raises_with_cause, Token), "config.token"),
    "registered twice": (made(_registers, Token), "config.token"),
    "registered wrongly": (made(_registers_a_variable, Token), "config.token"),
    "undone badly": (made(_clings, Token), "config.token"),
    "raised when assembled": (made(_fails_later, Token), "config.token"),
    "validated": (made(_raises, Validated), "config.token"),
    "no settings": (PluginSource(name="x", load=lambda: Bare), "config.token"),
    "in the place of all settings": (PluginSource(name="x", load=lambda: Bare), "config"),
    "in the place of a class": (made(_raises, Token), "config"),
}


def hides(*said: str) -> None:
    for text in said:
        assert "tops3cret" not in text
        assert "o, p, s" not in text  # nor its letters


@pytest.mark.parametrize("case", CASES)
async def test_a_plugin_that_fails_shows_no_secret(case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    installed, path = CASES[case]
    (file := tmp_path / "harness.toml").write_text(
        f'autoload = false\nsession.store = "memory"\nplugins.x.{path} = {{ "$env" = "HARNESS_TEST_SECRET" }}\n'
    )
    documents = collect(file)
    composition = structured(documents)
    findings = await check_composition(composition, tmp_path, documents, installed=[installed])
    assert [finding.severity.value for finding in findings][:1] == ["error"]
    assert findings[0].line == 3 or case == "raised when assembled"
    hides(*map(repr, findings), json.dumps(as_sarif(findings)), repr(composition))
    async with harness_of(composition, [installed], on_error="skip") as harness:
        hides(*(repr(status.to_json()) for status in inventory(harness, [installed], composition.plugins)))
        hides(*(str(failure.error) for failure in harness.failures))
    try:
        async with harness_of(composition, [installed]):
            pass
    except HarnessError as error:
        hides(str(error), repr(vars(error)), "".join(traceback.format_exception(error)))
        assert case != "raised when assembled"
    hides(caplog.text)


def test_a_store_that_cannot_be_made_shows_no_secret() -> None:
    def factory(folder: Path, config: Any) -> Any:
        raise ConnectionError(f"no access with {config['token']!s}")

    offered = [PluginSource(name="db", distribution="dist-db", version="1", load=lambda: factory)]
    config = resolve({"token": REFERENCE})
    with pytest.raises(CompositionError, match=r"no access with \$HARNESS_TEST_SECRET") as caught:
        open_store("db", Path(), config, lambda group: offered)
    hides("".join(traceback.format_exception(caught.value)), repr(config))


def test_values_are_concealed_in_every_spelling() -> None:
    config = resolve([REFERENCE])
    for spelled in (SECRET, repr(SECRET), json.dumps(SECRET)):
        hides(concealed(f"it was {spelled}, was it", config))
