"""Request bodies joined from parts that are encoded already: byte for byte what a JSON encoder would write (LLM-05).

Messages and tools are immutable, so each is encoded once in its life; a body costs what is new in it, and a request that
extends another shares its bytes up to the end of the earlier messages. Knows no vendor's fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from harness_core._json import JsonValue, canonical
from harness_core.models.messages import Encoded

__all__ = ["EncodedJson", "encoded_array", "encoded_object"]


class EncodedJson(str):
    """JSON text that is put into a body as it stands."""

    __slots__ = ()


def encoded_array(items: Iterable[Encoded], encoder: Callable[..., str], *, before: Iterable[str] = ()) -> EncodedJson:
    """The array of the items' encodings, after those in ``before``.

    ``encoder`` makes one item's JSON text and is called once for each record, so it must be pure and long-lived (a
    module's function, not a lambda made for each request). An item whose text is empty is left out.
    """
    parts = [*before]
    for item in items:
        try:
            parts.append(item._encodings[encoder])
        except KeyError:
            parts.append(item.encoded(encoder))
    return EncodedJson(f"[{','.join(filter(None, parts))}]")


def encoded_object(fields: Mapping[str, JsonValue | EncodedJson]) -> bytes:
    """The object of these fields, in their order, as UTF-8."""
    members = [
        f"{canonical(name)}:{value if type(value) is EncodedJson else canonical(value)}"
        for name, value in fields.items()
    ]
    return f"{{{','.join(members)}}}".encode()
