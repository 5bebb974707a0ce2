"""Messages in neutral form: what a conversation consists of, for every model service alike.

Records are immutable and know their own JSON form. They hold no vendor's field names and no behaviour of the loop.
"""

from __future__ import annotations

import json.encoder
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar, cast

import attrs

from harness_core._json import FrozenDict, JsonObject, canonical, freeze_object
from harness_core.errors import JsonValueError

__all__ = [
    "AssistantBlock",
    "AssistantMessage",
    "Encoded",
    "Message",
    "ReasoningBlock",
    "Source",
    "TextBlock",
    "ToolCallBlock",
    "ToolResultMessage",
    "Usage",
    "UserMessage",
    "canonical_message",
    "message_from_json",
]

_T = TypeVar("_T")

_quoted: Callable[[str], str] = json.encoder.encode_basestring
_IS_ERROR = ',"is_error":true'


def text_field(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuses anything but text where the record is made: a log that holds such a record could not be read again."""
    if not isinstance(value, str):
        raise JsonValueError(
            f"{type(instance).__name__}.{attribute.name} must be a str, not {type(value).__name__} ({value!r:.80}).",
            entry=f"$.{attribute.name}",
        )


@attrs.frozen
class TextBlock:
    """Visible text."""

    text: str = attrs.field(validator=text_field)

    def to_json(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


@attrs.frozen
class ReasoningBlock:
    """A model's reasoning, kept apart from its answer; ``signature`` is what some services need to accept it again."""

    text: str = attrs.field(validator=text_field)
    signature: str | None = attrs.field(default=None, validator=attrs.validators.optional(text_field))

    def to_json(self) -> dict[str, Any]:
        data = {"type": "reasoning", "text": self.text}
        if self.signature is not None:
            data["signature"] = self.signature
        return data


@attrs.frozen
class ToolCallBlock:
    """A call that the model asks for; ``arguments`` is the raw text it wrote, valid JSON or not (TOOLX-01)."""

    id: str = attrs.field(validator=text_field)
    name: str = attrs.field(validator=text_field)
    arguments: str = attrs.field(validator=text_field)

    def to_json(self) -> dict[str, Any]:
        return {"type": "tool-call", "id": self.id, "name": self.name, "arguments": self.arguments}


AssistantBlock: TypeAlias = TextBlock | ReasoningBlock | ToolCallBlock
"""What an answer of a model consists of."""


def _source_data(value: JsonObject) -> FrozenDict:
    return freeze_object(value, what="The data of a source")


@attrs.frozen
class Source:
    """Where a user-role message comes from (PRE-08, PRE-09): machine state, never parsed back out of the text.

    ``kind`` is ``"user"`` for a real person, ``"plugin"`` or a plugin's own kind otherwise; ``form`` is one of
    instructions, catalog, snapshot, notice, relay, recall. ``data`` holds whatever else the kind defines; in JSON its
    keys stand beside the others.
    """

    kind: str = "user"
    form: str | None = None
    plugin: str | None = None
    data: FrozenDict = attrs.field(factory=FrozenDict, converter=_source_data)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": self.kind}
        if self.plugin is not None:
            data["plugin"] = self.plugin
        if self.form is not None:
            data["form"] = self.form
        return {**data, **self.data}

    @classmethod
    def from_json(cls, data: JsonObject) -> Source:
        rest = {key: value for key, value in data.items() if key not in ("kind", "form", "plugin")}
        return cls(data["kind"], data.get("form"), data.get("plugin"), rest)


def _encodings() -> dict[Any, Any]:
    return {}


@attrs.frozen
class Encoded:
    """Keeps what an encoder made of an immutable record, so that it is made once (an adapter's wire form, say)."""

    _encodings: dict[Any, Any] = attrs.field(factory=_encodings, init=False, eq=False, repr=False)

    def encoded(self, encoder: Callable[[Any], _T]) -> _T:
        """``encoder(self)``, computed at most once for each encoder; the encoder must be pure and long-lived."""
        try:
            return cast("_T", self._encodings[encoder])
        except KeyError:
            return cast("_T", self._encodings.setdefault(encoder, encoder(self)))


def _blocks(value: Any) -> tuple[Any, ...]:
    return (TextBlock(value),) if isinstance(value, str) else tuple(cast("Iterable[Any]", value))


def _only(*kinds: type) -> Callable[[Any, Any, tuple[Any, ...]], None]:
    def check(instance: Any, attribute: Any, value: tuple[Any, ...]) -> None:
        for block in value:
            if not isinstance(block, kinds):
                allowed = ", ".join(kind.__name__ for kind in kinds)
                raise JsonValueError(
                    f"A {type(instance).__name__} holds a {type(block).__name__} ({block!r:.80}); its content is made of {allowed}.",
                    entry="$.content",
                )

    return check


@attrs.frozen(kw_only=True)
class UserMessage(Encoded):
    """A user-role message: a person's prompt, or context that a plugin or the loop itself put there."""

    id: str = attrs.field(validator=text_field)
    content: tuple[TextBlock, ...] = attrs.field(converter=_blocks, validator=_only(TextBlock))
    source: Source = attrs.field(factory=Source)

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content)

    def to_json(self) -> dict[str, Any]:
        return {
            "role": "user",
            "id": self.id,
            "content": [block.to_json() for block in self.content],
            "source": self.source.to_json(),
        }


@attrs.frozen(kw_only=True)
class AssistantMessage(Encoded):
    """What the model answered in one step."""

    content: tuple[AssistantBlock, ...] = attrs.field(
        converter=_blocks, validator=_only(TextBlock, ReasoningBlock, ToolCallBlock)
    )

    @property
    def text(self) -> str:
        """The visible text, joined without separators."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCallBlock))

    def to_json(self) -> dict[str, Any]:
        return {"role": "assistant", "content": [block.to_json() for block in self.content]}


@attrs.frozen(kw_only=True)
class ToolResultMessage(Encoded):
    """The result of one call, under the model's call id (TOOLX-06)."""

    call_id: str = attrs.field(validator=text_field)
    name: str = attrs.field(validator=text_field)
    content: tuple[TextBlock, ...] = attrs.field(converter=_blocks, validator=_only(TextBlock))
    is_error: bool = False

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.content)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "role": "tool",
            "call_id": self.call_id,
            "name": self.name,
            "content": [block.to_json() for block in self.content],
        }
        if self.is_error:
            data["is_error"] = True
        return data


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
"""A message of a conversation."""


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens of one request as the service counted them; ``None`` where it did not say (LLM-03)."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in attrs.asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, data: JsonObject) -> Usage:
        return cls(**data)


def _block_from_json(data: JsonObject) -> AssistantBlock:
    match data["type"]:
        case "text":
            return TextBlock(data["text"])
        case "reasoning":
            return ReasoningBlock(data["text"], data.get("signature"))
        case "tool-call":
            return ToolCallBlock(data["id"], data["name"], data["arguments"])
        case other:
            raise JsonValueError(f"A message holds a block of the unknown type {other!r}.", entry="$.content")


def message_from_json(data: JsonObject) -> Message:
    """The message that ``to_json`` wrote.

    Raises:
        JsonValueError: the role or a block type is unknown.
        KeyError: a field is missing.
    """
    content = tuple(_block_from_json(block) for block in data["content"])
    match data["role"]:
        case "user":
            return UserMessage(id=data["id"], content=content, source=Source.from_json(data["source"]))
        case "assistant":
            return AssistantMessage(content=content)
        case "tool":
            return ToolResultMessage(
                call_id=data["call_id"], name=data["name"], content=content, is_error=data.get("is_error", False)
            )
        case other:
            raise JsonValueError(f"A message has the unknown role {other!r}.", entry="$.role")


def canonical_message(message: Message) -> str:
    """The canonical JSON text of a message, made once for each record."""
    return message.encoded(_canonical)


def _canonical(message: Message) -> str:
    """Written out for the common shapes, which every step of every turn has; the rest goes the long way."""
    if isinstance(message, UserMessage):
        return canonical(message.to_json())
    blocks = ",".join([_block_text(block) for block in message.content])
    if isinstance(message, AssistantMessage):
        return f'{{"role":"assistant","content":[{blocks}]}}'
    head = f'{{"role":"tool","call_id":{_quoted(message.call_id)},"name":{_quoted(message.name)}'
    return f'{head},"content":[{blocks}]{_IS_ERROR if message.is_error else ""}}}'


def _block_text(block: AssistantBlock) -> str:
    if isinstance(block, TextBlock):
        return f'{{"type":"text","text":{_quoted(block.text)}}}'
    if isinstance(block, ToolCallBlock):
        named = f'"id":{_quoted(block.id)},"name":{_quoted(block.name)},"arguments":{_quoted(block.arguments)}'
        return f'{{"type":"tool-call",{named}}}'
    return canonical(block.to_json())
