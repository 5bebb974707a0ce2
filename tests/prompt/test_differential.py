"""Whatever is registered, changed and disposed, an assembly is what a plain evaluation without any cache gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from harness_core import (
    AssembleContext,
    Harness,
    Literal,
    PromptAssembly,
    PromptSettings,
    Scope,
    Section,
    ToolProviderResult,
    ToolSchema,
    render_context_snapshot,
    render_prompt,
)
from harness_core.errors import DuplicateNameError, HarnessError, ScopeError
from harness_core.prompt import UNLISTED_TOOLS, assemble
from harness_core.scopes import Handle

from .plain_assembly import plain_assemble

NAMES = ["a", "b", "c"]
TEXTS: list[Any] = [
    "",
    "plain",
    "{{a}}",
    "{{b}} and {{a}}",
    "{{ bad }}",
    Literal("{{ data }}"),
    ("head ", Literal("{{"), " {{a}}"),
    ["list ", "{{c}}"],
]
VALUES: list[Any] = ["1", "", "{{a}}", None, 3]
SCHEMAS = [
    ToolSchema("read", "r", {"type": "object"}),
    ToolSchema("write", "w", {"type": "object", "required": ["x"]}),
    ToolSchema("read", "another", {}),
]


class Failure(Exception):
    pass


class Cell:
    """What a provider returns; rules change it between assemblies."""

    def __init__(self, machine: Any, label: str, value: Any) -> None:
        self.machine, self.label, self.value = machine, label, value
        self.inside: Any = None

    def __call__(self, _: AssembleContext) -> Any:
        self.machine.calls.append(self.label)
        if self.inside is not None:
            self.inside()
        if isinstance(self.value, Failure):
            raise self.value
        if self.label.startswith("tools"):
            return fresh(self.value)
        return self.value


def fresh(value: Any) -> Any:
    """The same tuple, or new equal schemas in a list: both must be recognised as unchanged."""
    if isinstance(value, list):
        return [ToolSchema(s.name, s.description, dict(s.parameters)) for s in value]
    return value


def run(coroutine: Any) -> Any:
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    return stop.value.value


def outcome(function: Any) -> Any:
    """A result, or what a failure is known by."""
    try:
        return function()
    except Failure as error:
        return error
    except HarnessError as error:
        return (type(error), error.names)


class EditingChain:
    """Stands in for the waterfall: listeners that edit and replace, so that caches meet changed assemblies."""

    listeners = ()

    def __init__(self, edit: int) -> None:
        self.edit = edit

    def chain(self, _: Scope) -> EditingChain | None:
        return self if self.edit else None

    async def run(self, assembly: PromptAssembly, context: Any, end: Any) -> PromptAssembly:
        return edited(assembly, self.edit)


def edited(assembly: PromptAssembly, edit: int) -> PromptAssembly:
    match edit:
        case 1:
            assembly.sections.append(Section("added", "by a listener {{a}}"))
        case 2:
            assembly.sections[:] = [s.with_text("changed") for s in assembly.sections]
            assembly.variables["a"] = "set"
        case 3:
            return PromptAssembly([Section("replaced", "all")], tools=assembly.tools, variables=assembly.variables)
        case _:
            pass
    return assembly


class Registry(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.handles: list[Handle] = []
        self.cells: list[Cell] = []
        self.serial = 0

    @initialize(ordered=st.booleans())
    def begin(self, ordered: bool) -> None:
        order = ["write", UNLISTED_TOOLS] if ordered else None
        self.harness = Harness(PromptSettings("P", identity=False, tool_order=order), autoload=False)
        root = self.harness.root
        self.scopes = [root, top := root.child("top"), mid := top.child("mid"), mid.child("leaf"), root.child("side")]

    def cell(self, kind: str, value: Any) -> Cell:
        self.serial += 1
        cell = Cell(self, f"{kind} {self.serial}", value)
        self.cells.append(cell)
        return cell

    @rule(
        kind=st.sampled_from(["section", "context"]),
        scope=st.integers(0, 4),
        name=st.sampled_from(NAMES),
        text=st.sampled_from(TEXTS),
        order=st.integers(-1, 1),
        dynamic=st.booleans(),
        complete=st.integers(0, 9),
        interpolate=st.booleans(),
        tools=st.sampled_from([(), ("read",), ("write", "absent")]),
    )
    def register_text(
        self,
        kind: str,
        scope: int,
        name: str,
        text: Any,
        order: int,
        dynamic: bool,
        complete: int,
        interpolate: bool,
        tools: Any,
    ) -> None:
        prompt = self.scopes[scope].prompt
        given = self.cell(kind, text) if dynamic else text
        options: dict[str, Any] = {"order": order, "interpolate": interpolate, "tools": tools}
        if kind == "section":
            options["complete"] = complete == 0
        try:
            self.handles.append(getattr(prompt, kind)(name, given, **options))
        except DuplicateNameError:
            return

    @rule(
        scope=st.integers(0, 4),
        name=st.sampled_from(NAMES),
        value=st.sampled_from(VALUES),
        missing=st.sampled_from(["error", "empty", "literal"]),
    )
    def register_variable(self, scope: int, name: str, value: Any, missing: Any) -> None:
        try:
            cell = self.cell("variable", value)
            self.handles.append(self.scopes[scope].prompt.variable(name, cell, missing=missing))
        except DuplicateNameError:
            return

    @rule(
        scope=st.integers(0, 4),
        schemas=st.lists(st.sampled_from(SCHEMAS), max_size=3),
        shape=st.sampled_from(["tuple", "list", "result", "wrong"]),
    )
    def register_tools(self, scope: int, schemas: list[ToolSchema], shape: str) -> None:
        value: Any = {"tuple": tuple(schemas), "list": schemas, "wrong": None}.get(
            shape, ToolProviderResult(schemas, ["write"])
        )
        self.handles.append(self.scopes[scope].prompt.tools(self.cell("tools", value)))

    @rule(scope=st.integers(0, 4))
    def suppress(self, scope: int) -> None:
        self.handles.append(self.scopes[scope].prompt.suppress_runtime_context())

    @precondition(lambda self: self.handles)
    @rule(data=st.data())
    def dispose(self, data: Any) -> None:
        handle = data.draw(st.sampled_from(self.handles))
        self.handles.remove(handle)
        handle.dispose()

    @precondition(lambda self: self.cells)
    @rule(data=st.data(), fails=st.integers(0, 5))
    def change_what_a_provider_says(self, data: Any, fails: int) -> None:
        cell = data.draw(st.sampled_from(self.cells))
        if fails == 0:
            cell.value = Failure(cell.label)
        elif cell.label.startswith("variable"):
            cell.value = data.draw(st.sampled_from(VALUES))
        elif cell.label.startswith("tools"):
            cell.value = data.draw(
                st.sampled_from([(), tuple(SCHEMAS), list(SCHEMAS[:2]), ToolProviderResult(SCHEMAS[:1])])
            )
        else:
            cell.value = data.draw(st.sampled_from([*TEXTS, 7]))

    @rule(moved=st.integers(1, 4), below=st.integers(0, 4))
    def move_a_scope(self, moved: int, below: int) -> None:
        try:
            self.scopes[moved].relink(self.scopes[below])
        except ScopeError:
            return

    @rule(edit=st.integers(0, 3), order=st.permutations(range(5)))
    def assemble_everywhere(self, edit: int, order: list[int]) -> None:
        for number in order:
            scope = self.scopes[number]
            context = AssembleContext(scope=scope)
            self.calls = []
            expected = outcome(lambda scope=scope, context=context: edited(plain_assemble(scope, context), edit))
            plain_calls, self.calls = self.calls, []
            whole = isinstance(expected, PromptAssembly) and self.complete_section(scope)
            dispatch = EditingChain(0 if whole else edit)
            if whole:
                expected = outcome(lambda scope=scope, context=context: plain_assemble(scope, context))
                self.calls = []
            found = outcome(
                lambda dispatch=dispatch, context=context: run_failing(assemble(self.harness.prompt, dispatch, context))
            )
            assert self.calls == plain_calls
            assert found == expected
            if isinstance(found, PromptAssembly):
                for render in (render_prompt, render_context_snapshot):
                    bare = PromptAssembly(found.sections, found.contexts, found.tools, found.variables)
                    assert outcome(lambda render=render, found=found: render(found)) == outcome(
                        lambda render=render, bare=bare: render(bare)
                    )

    def complete_section(self, scope: Scope) -> bool:
        return bool(self.harness.prompt.view(scope).complete)


def run_failing(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("an assembly without waiting listeners waited")


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestRegistry.pytestmark = [
    pytest.mark.spec("SCOPE-06", "SCOPE-07", "SCOPE-08", "SCOPE-15", "SCOPE-22", "ASM-02", "ASM-05")
]
