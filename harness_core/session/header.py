"""The request header's JSON form, and when it is written again (HDR-01 to HDR-04).

In a log a header names its tools by digest; each schema stands in the log once, beside the first header that uses it.
Folding stays "the latest header wins": decoding gives the full header, and this module owns both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness_core._json import JsonObject, freeze_object
from harness_core.errors import JsonValueError
from harness_core.models.request import CallConfig, RequestHeader
from harness_core.models.schema import ToolSchema
from harness_core.session.digest import tool_digest
from harness_core.session.events import HeaderReason

__all__ = [
    "due",
    "header_from_json",
    "header_to_json",
    "schema_from_json",
    "schema_to_json",
    "schemas_beyond",
]


def due(last: RequestHeader | None, new: RequestHeader, *, first_of_loop: bool) -> HeaderReason | None:
    """Why ``new`` has to be written now, or ``None`` when the last header still says it (HDR-03)."""
    if last is None:
        return "initial"
    if first_of_loop:
        return "resume"
    return None if new == last else "change"


def header_to_json(header: RequestHeader, tool: Callable[[ToolSchema], Any]) -> dict[str, Any]:
    """Canonical form: what is empty is absent (HDR-01); ``tool`` writes one schema or a reference to it."""
    data: dict[str, Any] = {"config": header.config.to_json()}
    if header.supplied:
        data["supplied"] = sorted(header.supplied)
    if header.system:
        data["system"] = header.system
    if header.tools:
        data["tools"] = [tool(schema) for schema in header.tools]
    return data


def header_from_json(data: JsonObject, tool: Callable[[Any], ToolSchema]) -> RequestHeader:
    """What `header_to_json` wrote.

    Raises:
        JsonValueError: a field is unknown.
    """
    unknown = set(data) - {"config", "supplied", "system", "tools"}
    if unknown:
        raise JsonValueError(f"A request header has the unknown fields {sorted(unknown)}.", entry="$.header")
    return RequestHeader(
        config=CallConfig.from_json(data["config"]),
        supplied=data.get("supplied", ()),
        system=data.get("system", ""),
        tools=[tool(item) for item in data.get("tools", ())],
    )


def schema_to_json(tool: ToolSchema) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def schema_from_json(data: JsonObject) -> ToolSchema:
    return ToolSchema(data["name"], data["description"], freeze_object(data["parameters"]))


def schemas_beyond(header: RequestHeader, known: Mapping[str, ToolSchema]) -> dict[str, ToolSchema]:
    """The header's schemas that are not ``known`` yet, by digest, in the header's order."""
    fresh: dict[str, ToolSchema] = {}
    for tool in header.tools:
        digest = tool_digest(tool)
        if digest not in known:
            fresh.setdefault(digest, tool)
    return fresh
