"""All language-neutral cases of the prompt registry, through one runner.

The cases list listeners outermost first, in their order of registration. Here the later registered is further out, so
the runner marks them ``trylast``: among those, the earlier registered is further out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_core import (
    IDENTITY_SECTION,
    PERSONA_SECTION,
    ContextEntry,
    Harness,
    HarnessError,
    PromptAssembly,
    PromptSettings,
    Scope,
    Section,
    ToolProviderResult,
    ToolSchema,
    hookimpl,
    render_context_sections,
    render_context_snapshot,
    render_prompt,
)
from harness_core.prompt.render import SNAPSHOT_PREAMBLE
from harness_core.prompt.settings import IDENTITY_TEXT

CASES = json.loads((Path(__file__).parent / "cases" / "registry.json").read_text(encoding="utf-8"))["cases"]

SECOND_CALL_IS_REFUSED = {"wf-next-twice"}
"""Cases that show a second ``next()`` going on elsewhere: here it is a WaterfallError (D3, X-20)."""


SETTINGS = {"include_runtime_context": "runtime_context", "include_harness_identity": "identity"}
"""The cases' names of settings, and ours."""


class CaseError(Exception):
    """What providers and listeners of a case raise."""


def of_group(group: str) -> list[Any]:
    return [
        pytest.param(case, id=case["id"], marks=pytest.mark.spec(*case["covers"]))
        for case in CASES
        if case["group"] == group
    ]


def number(value: Any) -> Any:
    if isinstance(value, dict) and "$number" in value:
        return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "-0": -0.0}[value["$number"]]
    return value


def assert_error(error: BaseException, expected: dict[str, Any]) -> None:
    kind = expected["kind"]
    if kind in ("provider_error", "listener_error"):
        assert type(error) is CaseError
        assert error.__notes__
        return
    assert isinstance(error, HarnessError), error
    assert error.code.replace("-", "_") == kind
    assert f"[{error.code}]" in str(error)
    for key, attribute in {
        "owner_kind": "kind",
        "owner_name": "entry",
        "reference": "reference",
        "form": "form",
    }.items():
        if key in expected:
            assert getattr(error, attribute) == expected[key]
    for key in ("names", "known"):
        if key in expected:
            assert list(getattr(error, key)) == expected[key]
    if "layer" in expected:
        assert error.layer == expected["layer"]
    if "name" in expected:
        assert expected["name"] in error.names


@pytest.mark.parametrize("case", of_group("render_prompt"))
def test_render_prompt(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expect"]
    assembly = PromptAssembly([Section(**each) for each in given["sections"]], variables=given["variables"])
    if "error" in expected:
        with pytest.raises(HarnessError) as caught:
            render_prompt(assembly)
        assert_error(caught.value, expected["error"])
    else:
        assert render_prompt(assembly) == expected["text"]


@pytest.mark.parametrize("case", of_group("render_contexts"))
def test_render_contexts(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expect"]
    assembly = PromptAssembly(
        contexts=[ContextEntry(**each) for each in given["contexts"]], variables=given["variables"]
    )
    if "error" in expected:
        for render in (render_context_sections, render_context_snapshot):
            with pytest.raises(HarnessError) as caught:
                render(assembly)
            assert_error(caught.value, expected["error"])
        return
    parts = render_context_sections(assembly)
    assert [{"name": part.name, "text": part.text} for part in parts] == expected["sections"]
    body = expected["body"]
    assert render_context_snapshot(assembly) == (f"{SNAPSHOT_PREAMBLE}\n\n{body}" if body else "")


def schemas_of(items: list[dict[str, Any]]) -> list[ToolSchema]:
    return [ToolSchema(each["name"], each["description"], each.get("parameters", {})) for each in items]


def provided(data: dict[str, Any]) -> Any:
    schemas = schemas_of(data["schemas"])
    return schemas if data["known_names"] is None else ToolProviderResult(schemas, data["known_names"])


@pytest.mark.anyio
@pytest.mark.parametrize("case", of_group("order_tools"))
async def test_order_tools(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expect"]
    harness = Harness(PromptSettings(tool_order=given["tool_order"]), autoload=False)
    for data in given["providers"]:
        harness.root.prompt.tools(lambda _, data=data: provided(data))
    if "error" in expected:
        with pytest.raises(HarnessError) as caught:
            await harness.assemble()
        assert_error(caught.value, expected["error"])
    else:
        assert [[tool.name, tool.description] for tool in (await harness.assemble()).tools] == expected["tools"]


@pytest.mark.parametrize("case", of_group("validate_tool_order"))
def test_validate_tool_order(case: dict[str, Any]) -> None:
    order, expected = case["input"]["tool_order"], case["expect"]
    if "error" in expected:
        with pytest.raises(HarnessError) as caught:
            Harness(PromptSettings(tool_order=order), autoload=False)
        assert_error(caught.value, expected["error"])
    else:
        Harness(PromptSettings(tool_order=order), autoload=False)


class Program:
    """One registry program: scopes, handles, and the logs that its steps are checked against."""

    def __init__(self, case: dict[str, Any]) -> None:
        given = case["input"]
        self.keep_builtins = given.get("keep_builtins", False)
        config = {SETTINGS.get(key, key): value for key, value in given["config"].items()}
        config.setdefault("identity", self.keep_builtins)
        self.strict = case["id"] in SECOND_CALL_IS_REFUSED
        self.harness = Harness(PromptSettings(**config), autoload=False)
        self.scopes: dict[str, Scope] = {}
        for name, parent in given["scopes"].items():
            self.scopes[name] = (self.scopes[parent] if parent else self.harness.root).child(name)
        self.handles: dict[str, Any] = {}
        self.changes = 0
        self.evaluated: list[str] = []
        self.listeners: list[str] = []
        subscribers = self.harness.prompt.subscribers
        self.harness.prompt.subscribers = lambda: [*subscribers(), self.notice]

    def notice(self) -> None:
        self.changes += 1

    def scope(self, step: dict[str, Any]) -> Scope:
        return self.scopes[step["scope"]] if step.get("scope") else self.harness.root

    def provider(self, data: dict[str, Any], result: Any) -> Any:
        runs = 0

        def call(_: object) -> Any:
            nonlocal runs
            runs += 1
            self.evaluated.append(data["id"])
            if runs == 1:
                for step in data.get("first_run", []):
                    self.register(step)
            if data.get("raises"):
                raise CaseError(data["id"])
            return result()

        return call

    def text(self, step: dict[str, Any]) -> Any:
        data = step.get("provider")
        return step.get("text") if data is None else self.provider(data, lambda: data["returns"])

    def register(self, step: dict[str, Any]) -> None:
        """Every step that is synchronous."""
        prompt = self.scope(step).prompt
        match step["op"]:
            case "section":
                flags = {"complete": step["complete"]} if "complete" in step else {}
                handle = prompt.section(step["name"], self.text(step), order=number(step["order"]), **flags)
            case "context":
                handle = prompt.context(step["name"], self.text(step), order=number(step["order"]))
            case "variable":
                data = step["provider"]
                handle = prompt.variable(step["name"], self.provider(data, lambda: data["returns"]))
            case "tools":
                data = step["provider"]
                handle = prompt.tools(self.provider(data, lambda: provided(data)))
            case "suppress":
                handle = prompt.suppress_runtime_context()
            case "dispose":
                self.handles[step["handle"]].dispose()
                return
            case "rebind":
                self.scopes[step["scope"]].relink(self.scopes[step["parent"]] if step["parent"] else self.harness.root)
                return
            case other:
                raise AssertionError(f"unknown step {other}")
        if "handle" in step:
            self.handles[step["handle"]] = handle

    async def run(self, step: dict[str, Any]) -> None:
        if step["op"] == "assemble":
            await self.assemble(step)
        elif step["op"] == "listener":
            activation = await self.harness.install(self.listener(step), scope=self.scope(step))
            if "handle" in step:
                self.handles[step["handle"]] = DisposedInPlace(activation)
        else:
            self.register(step)

    def listener(self, step: dict[str, Any]) -> Any:
        program, runs = self, 0

        class Listener:
            name = step["id"]

            @hookimpl(trylast=True)
            async def system_prompt_assemble(self, assembly: PromptAssembly, call_next: Any) -> Any:
                nonlocal runs
                runs += 1
                program.listeners.append(step["id"])
                if runs == 1:
                    for each in step.get("first_run", []):
                        handle = program.handles.get(each.get("handle", ""))
                        if isinstance(handle, DisposedInPlace):
                            await handle.activation.aclose()
                        else:
                            await program.run(each)
                if step.get("raises"):
                    raise CaseError(step["id"])
                for edit in step["before"]:
                    apply(edit, assembly)
                result = None
                for _ in range(step["next"]):
                    result = await call_next()
                if step["returns"] == "next":
                    return result
                if step["returns"] == "assembly":
                    return assembly
                new = step["replacement"]
                return PromptAssembly(
                    [Section(*each) for each in new["sections"]],
                    [ContextEntry(*each) for each in new["contexts"]],
                    schemas_of(new["tools"]),
                    new["variables"],
                )

        return Listener()

    async def assemble(self, step: dict[str, Any]) -> None:
        expected = step["expect"]
        self.evaluated.clear()
        self.listeners.clear()
        error = None
        try:
            assembly = await self.harness.assemble(self.scope(step))
        except Exception as caught:
            error = caught
        for key in ("evaluated", "listeners"):
            if key in expected:
                assert getattr(self, key) == expected[key]
        if self.strict:
            assert isinstance(error, HarnessError)
            assert error.code == "waterfall"
            assert error.plugin == "a"
            return
        if "error" in expected:
            assert error is not None
            assert_error(error, expected["error"])
            return
        if error is not None:
            raise error
        names = {"$IDENTITY_NAME": IDENTITY_SECTION, "$IDENTITY": IDENTITY_TEXT}
        sections = [
            [section.name, section.text]
            for section in assembly.sections
            if self.keep_builtins or (section.name, section.text) != (PERSONA_SECTION, "")
        ]
        seen = {
            "sections": sections,
            "contexts": [[context.name, context.text] for context in assembly.contexts],
            "variables": [list(item) for item in assembly.variables.items()],
            "tools": [tool.name for tool in assembly.tools],
        }
        for key, found in seen.items():
            if key in expected:
                wanted = [
                    [names.get(part, part) if isinstance(part, str) else part for part in each]
                    if isinstance(each, list)
                    else each
                    for each in expected[key]
                ]
                assert found == wanted
        if "rendered" in expected:
            assert render_prompt(assembly) == expected["rendered"]


class DisposedInPlace:
    """The handle of a listener: undoing it is asynchronous."""

    def __init__(self, activation: Any) -> None:
        self.activation = activation


def apply(edit: dict[str, Any], assembly: PromptAssembly) -> None:
    """An edit "in place": records are frozen, so a changed one is put in its place (D14)."""
    match edit["do"]:
        case "add_section":
            assembly.sections.append(Section(edit["name"], edit["text"]))
        case "add_context":
            assembly.contexts.append(ContextEntry(edit["name"], edit["text"]))
        case "edit_section":
            current = assembly.section(edit["name"])
            assert current is not None
            assembly.replace_section(current.with_text(edit["text"]))
        case "set_variable":
            assembly.variables[edit["name"]] = edit["value"]
        case "remove_section":
            assembly.sections[:] = [each for each in assembly.sections if each.name != edit["name"]]
        case "add_tool":
            assembly.tools.append(ToolSchema(edit["name"], edit.get("description", "")))
        case other:
            raise AssertionError(f"unknown edit {other}")


@pytest.mark.anyio
@pytest.mark.parametrize("case", of_group("registry"))
async def test_registry(case: dict[str, Any]) -> None:
    program = Program(case)
    async with program.harness:
        for step in case["input"]["steps"]:
            before = program.changes
            if step["op"] == "dispose" and isinstance(program.handles.get(step["handle"]), DisposedInPlace):
                await program.handles[step["handle"]].activation.aclose()
            elif "error" in step:
                with pytest.raises(HarnessError) as caught:
                    await program.run(step)
                assert_error(caught.value, step["error"])
            else:
                await program.run(step)
            if "changes" in step:
                assert program.changes - before == step["changes"]


def test_every_case_has_a_runner() -> None:
    assert len(CASES) == 154
    assert {case["group"] for case in CASES} == {
        "render_prompt",
        "render_contexts",
        "order_tools",
        "validate_tool_order",
        "registry",
    }
