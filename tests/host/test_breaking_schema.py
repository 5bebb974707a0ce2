"""The JSON Schema of a composition says what reading it says: what one takes, the other takes."""

from __future__ import annotations

from typing import Any

import attrs
import jsonschema
from hypothesis import given, settings, strategies as st

from harness_core.host import PluginSource
from harness_core.host.composition import Composition
from harness_core.host.config import structure_config
from harness_core.host.references import is_reference, resolve
from harness_core.host.schema import schema_of


@attrs.define
class Inner:
    depth: int = 1


@attrs.define
class Settings:
    text: str
    limit: int = 1
    ratio: float = 0.5
    on: bool = False
    maybe: str | None = None
    many: list[str] = attrs.field(factory=list)
    lists: list[list[int]] = attrs.field(factory=list)
    table: dict[str, float] = attrs.field(factory=dict)
    inner: Inner = attrs.field(factory=Inner)
    inners: dict[str, Inner] = attrs.field(factory=dict)
    anything: Any = None
    either: str | int = 1


class Typed:
    Config = Settings


class Bare:
    pass


INSTALLED = [PluginSource(name="typed", load=lambda: Typed), PluginSource(name="bare", load=lambda: Bare)]
SCHEMA, PROBLEMS = schema_of(INSTALLED)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ENVIRONMENT = {"HARNESS_TEST_VALUE": "1"}

references = st.sampled_from([{"$env": "HARNESS_TEST_VALUE"}, {"$env": "HARNESS_TEST_VALUE", "default": "x"}])
plain = st.sampled_from(
    ["text", 1, -3, 0.5, True, [], {}, ["a"], [1], ["a", True], {"a": 1}, {"depth": 2}, [[1]], [["x"]]]
)
scalars = st.sampled_from(["text", 1, 0.5, True])


def tables(**fields: Any) -> Any:
    """Tables of some of these keys, rarely with a value of another sort, or a key that there is not."""
    # Whether a text from the environment is one of several words cannot be told from the file.
    other = {key: plain if key in ("on_error", "durability") else plain | references for key in fields}
    known = {key: st.one_of(*[field] * 6, other[key]) for key, field in fields.items()}
    return st.fixed_dictionaries({}, optional=known) | st.fixed_dictionaries({"unknown": scalars}, optional=known)


texts, lists = st.sampled_from(["a", "b"]), st.lists(st.just("x") | references, max_size=2)
typed = tables(
    text=texts, limit=st.just(3), ratio=st.sampled_from([1, 0.5]), on=st.booleans(), maybe=texts, many=lists,
    lists=st.lists(st.lists(st.just(1) | references, max_size=2), max_size=2),
    table=st.dictionaries(texts, st.just(0.5) | references, max_size=2), inner=tables(depth=st.just(3)),
    inners=st.dictionaries(texts, tables(depth=st.just(1)), max_size=2), anything=plain, either=scalars,
)  # fmt: skip
plugins = st.fixed_dictionaries(
    {},
    optional={
        name: tables(
            plugin=texts, enabled=st.booleans(), before=lists, after=lists, scope=texts, config=config,
            on_error=st.sampled_from(["fail", "skip", "maybe"]),
        )
        for name, config in (
            ("typed", typed),
            ("bare", st.just({}) | plain),
            ("other", plain),
        )
    },
)  # fmt: skip
models = tables(provider=texts, model=texts, temperature=st.sampled_from([1, 0.5]), max_tokens=st.just(5))
placed = st.dictionaries(
    texts, tables(plugin=texts, exclude=st.booleans(), order=st.just(1.5), before=lists), max_size=2
)
agents = st.dictionaries(
    texts,
    tables(
        parent=texts, persona=texts, runtime_context=st.booleans(), tools=lists, deny_tools=lists, model=models,
        plugins=plugins, sections=placed, contexts=placed,
    ),
    max_size=2,
)  # fmt: skip
compositions = tables(
    extends=texts | st.just(["a"]), prompt=tables(persona=texts, identity=st.booleans(), tool_order=lists), model=models,
    session=tables(store=texts, config=plain, folder=texts, durability=st.sampled_from(["request", "event", "often"])),
    plugins=plugins, agents=agents, sections=placed, contexts=placed, autoload=st.booleans(), outermost=lists,
    on_error=st.sampled_from(["fail", "skip"]),
)  # fmt: skip


def problems(data: dict[str, Any]) -> list[str]:
    """What reading it refuses, with the settings of the plugins."""
    found = structure_config(resolve(data, "", ENVIRONMENT), Composition)
    if isinstance(found, list):
        return [str(each) for each in found]
    said = []
    for table in (found.plugins, *(agent.plugins for agent in found.agents.values())):
        if "typed" in table:
            settings = structure_config(resolve(table["typed"].config, "", ENVIRONMENT), Settings)
            said += [str(each) for each in settings] if isinstance(settings, list) else []
        if any(is_reference(each.config) for each in table.values()):
            said.append("a text in the place of settings")
        if "bare" in table and table["bare"].config:
            said.append("bare: takes no configuration")
    # A file that extends another need not say everything.
    return [each for each in said if "is missing" not in each]


@settings(max_examples=max(300, settings.default.max_examples))
@given(compositions)
def test_the_schema_takes_what_reading_takes(data: dict[str, Any]) -> None:
    refused, errors = problems(data), [error.message for error in VALIDATOR.iter_errors(data)]
    assert bool(refused) == bool(errors), (refused, errors)
