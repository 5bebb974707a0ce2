"""What a model was told, in one shape for every framework, and the scripted model of each.

The same script for all: two calls of a tool and an answer, and an answer to a second question.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

import attrs

from harness_core import Harness
from harness_core.models import AssistantMessage, ScriptedAnswer, ScriptedModel, ToolResultMessage, UserMessage
from tests.docs._pages import ROOT, to_check

CALLS = [{"city": "Paris"}, {"city": "Atlantis"}]
ANSWERS = ["Take a hat.", "You are welcome."]
QUESTIONS = ["What shall I take?", "Thank you."]


@attrs.frozen
class Told:
    """One request: the system text, the tools as (name, description, schema), and the messages as (role, text)."""

    system: str | None
    tools: list[tuple[str, str, str]]
    messages: list[tuple[str, str]]


class Talk(Protocol):
    """A conversation: the code on the page of a framework, or the harness's own agent."""

    def ask(self, question: str) -> Awaitable[str]: ...


@attrs.frozen
class Framework:
    """``open`` makes a conversation with a scripted model, and says how to read what that model was told."""

    module: str | None
    open: Callable[[Harness], Awaitable[tuple[Talk, Callable[[], list[Told]]]]]


def _text(parameters: Any) -> str:
    return json.dumps(parameters, ensure_ascii=False)  # keeps the order of keys: it is part of what is told


def conversation_of(page: str) -> Any:
    """The class that the first block of a page of the documentation defines."""
    file: Path = ROOT / "docs/how-to" / page
    block = to_check(file, "python")[0]
    code: CodeType = compile("\n" * (block.line - 1) + block.body, str(file), "exec")
    namespace: dict[str, Any] = {"__name__": "page"}
    exec(code, namespace)
    return namespace["Conversation"]


# --- the harness's own agent ------------------------------------------------------------------------------------------


@attrs.frozen
class _OwnAgent:
    agent: Any

    async def ask(self, question: str) -> str:
        result = await self.agent.run(question)
        return str(result.text)


async def own_agent(harness: Harness) -> tuple[Talk, Callable[[], list[Told]]]:
    calls = [ScriptedAnswer(calls=[("forecast", arguments)]) for arguments in CALLS]
    model = ScriptedModel(*calls, *ANSWERS)
    harness.root.models.register("script", model)
    agent = await harness.create_agent("a", provider="script", model="m")
    roles: dict[type, str] = {UserMessage: "user", AssistantMessage: "assistant", ToolResultMessage: "tool"}

    def told() -> list[Told]:
        return [
            Told(
                request.header.system,
                [(tool.name, tool.description, _text(tool.parameters)) for tool in request.header.tools],
                [(roles[type(message)], message.text) for message in request.messages],
            )
            for request in model.requests
        ]

    return _OwnAgent(agent), told


# --- pydantic-ai ------------------------------------------------------------------------------------------------------


async def pydantic_ai(harness: Harness) -> tuple[Talk, Callable[[], list[Told]]]:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    script = [ToolCallPart("forecast", arguments) for arguments in CALLS] + [TextPart(text) for text in ANSWERS]
    seen: list[Told] = []

    def answer(messages: Sequence[Any], info: Any) -> ModelResponse:
        tools = [(tool.name, tool.description, _text(tool.parameters_json_schema)) for tool in info.function_tools]
        seen.append(Told(info.instructions, tools, [part for message in messages for part in parts_of(message)]))
        return ModelResponse(parts=[script[len(seen) - 1]])

    def parts_of(message: Any) -> list[tuple[str, str]]:
        roles = {"user-prompt": "user", "tool-return": "tool", "text": "assistant", "tool-call": "assistant"}
        return [
            (roles[part.part_kind], "" if part.part_kind == "tool-call" else part.content) for part in message.parts
        ]

    return conversation_of("own-loop-pydantic-ai.md")(harness, FunctionModel(answer)), lambda: seen


# --- the OpenAI Agents SDK --------------------------------------------------------------------------------------------


async def openai_agents(harness: Harness) -> tuple[Talk, Callable[[], list[Told]]]:
    from agents.testing import ScriptedModel, assistant_message, function_call

    calls = [function_call("forecast", arguments, call_id=f"c{i}") for i, arguments in enumerate(CALLS)]
    said = [assistant_message(text, item_id=f"m{i}") for i, text in enumerate(ANSWERS)]
    model = ScriptedModel([[item] for item in (*calls, *said)])

    def told() -> list[Told]:
        return [
            Told(
                call.system_instructions,
                [(tool.name, tool.description, _text(tool.params_json_schema)) for tool in call.tools],
                [said_in(item) for item in call.input],
            )
            for call in model.calls
        ]

    def said_in(item: Any) -> tuple[str, str]:
        match item.get("type"):
            case "function_call":
                return "assistant", ""
            case "function_call_output":
                return "tool", item["output"]
            case "message":
                return "assistant", item["content"][0]["text"]
        return item["role"], item["content"]

    return conversation_of("own-loop-openai-agents.md")(harness, model), told


# --- LangChain --------------------------------------------------------------------------------------------------------


async def langchain(harness: Harness) -> tuple[Talk, Callable[[], list[Told]]]:
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    seen: list[Told] = []

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self.bind(tools=tools)

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
            system, *others = messages
            assert system.type == "system"
            functions = [tool["function"] for tool in options["tools"]]
            tools = [(tool["name"], tool["description"], _text(tool["parameters"])) for tool in functions]
            roles = {"human": "user", "ai": "assistant", "tool": "tool"}
            seen.append(Told(system.text, tools, [(roles[message.type], message.text) for message in others]))
            return super()._generate(messages, stop, run_manager)

    calls = [
        AIMessage("", tool_calls=[{"name": "forecast", "args": arguments, "id": f"c{i}"}])
        for i, arguments in enumerate(CALLS)
    ]
    model = Scripted(messages=iter([*calls, *map(AIMessage, ANSWERS)]))
    return conversation_of("own-loop-langchain.md")(harness, model), lambda: seen


FRAMEWORKS = {
    "agent": Framework(None, own_agent),
    "pydantic-ai": Framework("pydantic_ai", pydantic_ai),
    "openai-agents": Framework("agents", openai_agents),
    "langchain": Framework("langchain", langchain),
}
