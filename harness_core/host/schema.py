"""The JSON Schema of a composition, from its classes and the settings of every installed plugin: for editors.

It says what structuring says: the same keys, types and defaults. Where a value may come from the environment, the
reference is allowed as well.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import attrs

from harness_core.host.composition import Composition
from harness_core.host.descriptions import descriptions
from harness_core.host.discovery import PluginSource
from harness_core.host.references import DEFAULT_KEY, ENV_KEY

__all__ = ["schema_of"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "environment"


def schema_of(installed: Iterable[PluginSource]) -> tuple[dict[str, Any], dict[str, str]]:
    """The schema, and for each plugin whose settings it could not include, why.

    A plugin's settings come from its ``Config`` class, for which it is imported.
    """
    definitions: dict[str, Any] = {_REFERENCE: _reference()}
    top = _defined(Composition, definitions, "")
    problems: dict[str, str] = {}
    tables: dict[str, Any] = {}
    for source in installed:
        try:
            tables[source.name] = _table_of(source, definitions)
        except Exception as error:
            problems[source.name] = f"{type(error).__name__}: {error}"
    for owner in ("Composition", "AgentTable"):
        plugins = definitions[owner]["properties"]["plugins"]
        plugins["properties"] = dict(tables)
    return {"$schema": DIALECT, "title": "harness.toml", **top, "$defs": definitions}, problems


def _reference() -> dict[str, Any]:
    return {
        "description": "The value of an environment variable.",
        "type": "object",
        "properties": {ENV_KEY: {"type": "string", "minLength": 1}, DEFAULT_KEY: {}},
        "required": [ENV_KEY],
        "additionalProperties": False,
    }


def _table_of(source: PluginSource, definitions: dict[str, Any]) -> dict[str, Any]:
    """The table of one plugin: as every plugin's, with the settings of its own."""
    config = getattr(source.imported(), "Config", None)
    by = f"{source.distribution} {source.version}" if source.distribution else "this harness"
    if config is None or not attrs.has(config):
        settings: dict[str, Any] = {"type": "object", "maxProperties": 0, "description": "It takes no settings."}
    else:
        settings = _defined(config, definitions, f"{source.name}.")
    common = definitions["PluginTable"]
    return {
        **common,
        "description": f"The plugin {source.name} of {by}.",
        "properties": {**common["properties"], "config": settings},
    }


def _defined(kind: type, definitions: dict[str, Any], prefix: str) -> dict[str, Any]:
    """A reference to the definition of a class, which is added with those of the classes in it."""
    import msgspec

    [made], components = msgspec.json.schema_components(
        [kind], schema_hook=lambda _: {}, ref_template="#/$defs/" + prefix.replace("/", "~1") + "{name}"
    )
    classes = _classes(kind)
    for name, schema in components.items():
        definitions[f"{prefix}{name}"] = _strict(schema, classes.get(name))
    return made


def _classes(kind: type) -> dict[str, type]:
    """The attrs classes that a class is made of, by name."""
    found: dict[str, type] = {}

    def visit(hint: Any) -> None:
        if isinstance(hint, type) and attrs.has(hint) and hint.__name__ not in found:
            found[hint.__name__] = hint
            for field in attrs.fields(attrs.resolve_types(hint)):
                visit(field.type)
        for each in getattr(hint, "__args__", ()):
            visit(each)
        if isinstance(hint, types.GenericAlias):
            visit(hint.__origin__)

    visit(kind)
    return found


def _strict(schema: dict[str, Any], kind: type | None) -> dict[str, Any]:
    """A class's schema as the composition is read: no unknown keys, descriptions, and references to the environment."""
    if "properties" not in schema:
        return schema
    said = descriptions(kind) if kind is not None else {}
    properties = {}
    for name, each in schema["properties"].items():
        described = {"description": said[name]} if name in said else {}
        properties[name] = _or_reference(_without_null(each)) | described
    # What one file leaves out, another may say that it extends: `harness check` knows both.
    rest = {key: value for key, value in schema.items() if key != "required"}
    return {**rest, "properties": properties, "additionalProperties": False}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null: a key that may be None is absent."""
    rest = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if schema.get("default", ...) is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    if "anyOf" not in schema or len(rest) == len(schema["anyOf"]):
        return schema
    return {**{k: v for k, v in schema.items() if k != "anyOf"}, **(rest[0] if len(rest) == 1 else {"anyOf": rest})}


def _or_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """A plain value may come from the environment, as may those in a table or list; whole tables and lists may not."""
    if schema.get("type") == "object":
        if isinstance(schema.get("additionalProperties"), dict):
            schema = {**schema, "additionalProperties": _or_reference(schema["additionalProperties"])}
        return {**schema, "not": {"required": [ENV_KEY]}}
    if isinstance(schema.get("items"), dict):
        return {**schema, "items": _or_reference(schema["items"])}
    if not _is_plain(schema):
        return schema
    outer = {key: schema[key] for key in ("default",) if key in schema}
    inner = {key: value for key, value in schema.items() if key != "default"}
    return {"anyOf": [inner, {"$ref": f"#/$defs/{_REFERENCE}"}], **outer}


def _is_plain(schema: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        return all(map(_is_plain, schema["anyOf"]))
    return "enum" in schema or schema.get("type") in ("string", "integer", "number", "boolean")
