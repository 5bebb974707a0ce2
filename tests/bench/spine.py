"""What the registry, assemblies and waterfalls cost: unchanged steps at three sizes, listeners, changes, registrations.

``python -m tests.bench.spine`` runs all of it under pyperf; ``-o FILE`` keeps the values, ``--fast`` takes fewer.
Coroutines are driven by hand, so that no event loop is measured. Sizes are sections/contexts/tools/variables: texts of
200 characters, half of them callables, one variable in each; schemas of some 600 bytes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import anyio
import pyperf

from harness_core import (
    Harness,
    PromptAssembly,
    PromptSettings,
    ToolSchema,
    hookimpl,
    render_context_snapshot,
    render_prompt,
)
from harness_core.models import CallConfig, RequestHeader
from harness_core.prompt import assemble

SIZES = ((10, 5, 10, 5), (100, 20, 100, 20), (300, 50, 1000, 50))
CONFIG = CallConfig(provider="p", model="m")


def driven(coroutine: Any) -> Any:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it waited")


def schema(number: int) -> ToolSchema:
    properties = {f"p{i}": {"type": "string", "description": "what it means to say here, in words"} for i in range(7)}
    return ToolSchema(f"tool{number}", f"Does thing number {number}.", {"type": "object", "properties": properties})


def text(kind: str, number: int, variables: int) -> str:
    return f"{kind} {number} of {{{{v{number % variables}}}}} ".ljust(200, "x")


class Setup:
    """A harness of one size, and what a step does with it."""

    def __init__(self, sections: int, contexts: int, tools: int, variables: int, depth: int = 0) -> None:
        self.harness = Harness(PromptSettings(identity=False), autoload=False)
        self.scope = self.harness.root
        scopes = [self.scope]
        for level in range(depth):
            self.scope = self.scope.child(f"level {level}")
            scopes.append(self.scope)
        self.changing = "x" * 200
        self.value = "value"
        for number in range(sections):
            given = text("section", number, variables)
            prompt = scopes[number % len(scopes)].prompt
            prompt.section(f"s{number}", given if number % 2 else (lambda _, given=given: given), order=number)
        for number in range(contexts):
            given = text("context", number, variables)
            self.scope.prompt.context(
                f"c{number}", given if number % 2 else (lambda _, given=given: given), order=number
            )
        for number in range(variables):
            self.scope.prompt.variable(f"v{number}", lambda _, number=number: f"value {number}")
        schemas = tuple(schema(number) for number in range(tools))
        self.scope.prompt.tools(lambda _: schemas)
        self.header: RequestHeader | None = None

    def step(self) -> None:
        """Assemble, render both lanes, compare the header."""
        assembly = driven(assemble(self.harness.prompt, self.harness.hooks.system_prompt_assemble, self.scope))
        system = render_prompt(assembly)
        render_context_snapshot(assembly)
        header = RequestHeader(config=CONFIG, system=system, tools=assembly.tools)
        if header != self.header:
            self.header = header


def timed(function: Callable[[], object]) -> Callable[[int], float]:
    def run(loops: int) -> float:
        function()
        started = time.perf_counter()
        for _ in range(loops):
            function()
        return time.perf_counter() - started

    return run


class Around:
    @hookimpl
    async def system_prompt_assemble(self, assembly: PromptAssembly, call_next: Any) -> Any:
        return await call_next()


class EditsOneTool:
    """Rewrites one tool's description in every step, as a plugin that adapts a tool does."""

    @hookimpl
    def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
        tool = assembly.tools[0]
        assembly.tools[0] = ToolSchema(tool.name, "changed", tool.parameters)


class Small:
    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("small", "text", order=1)

    @hookimpl
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await call_next()


class Other:
    @hookimpl
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await call_next()


def bench_listeners(runner: pyperf.Runner, count: int) -> None:
    """A whole assembly at the smallest size; the cost of a listener is the difference to none, divided."""

    def run(loops: int) -> float:
        async def measured() -> float:
            setup = Setup(*SIZES[0])
            async with setup.harness:
                for _ in range(count):
                    await setup.harness.install(Around)
                return timed(setup.step)(loops)

        return anyio.run(measured)

    runner.bench_time_func(f"step 10/5/10/5 with {count} listeners", run)


def bench_edit(runner: pyperf.Runner) -> None:
    def run(loops: int) -> float:
        async def measured() -> float:
            setup = Setup(*SIZES[2])
            async with setup.harness:
                await setup.harness.install(EditsOneTool)
                return timed(setup.step)(loops)

        return anyio.run(measured)

    runner.bench_time_func("step 300/50/1000/50, a listener edits one tool", run)


def bench_install(runner: pyperf.Runner) -> None:
    def run(loops: int) -> float:
        async def measured() -> float:
            async with Harness(autoload=False) as harness:
                for number in range(1000):
                    await harness.install(Other, scope=harness.scope(f"s{number % 50}"))
                await (await harness.install(Small)).aclose()
                spent = 0.0
                for _ in range(loops):
                    started = time.perf_counter()
                    activation = await harness.install(Small)
                    spent += time.perf_counter() - started
                    await activation.aclose()
                return spent

        return anyio.run(measured)

    runner.bench_time_func("install a plugin, 1000 others active", run)


def bench_changes(runner: pyperf.Runner) -> None:
    size = SIZES[1]

    def alternating(setup: Setup, change: Callable[[int], None]) -> Callable[[int], float]:
        def run(loops: int) -> float:
            setup.step()
            started = time.perf_counter()
            for number in range(loops):
                change(number)
                setup.step()
            return time.perf_counter() - started

        return run

    one_text = Setup(*size)
    one_text.harness.root.prompt.section("changing", lambda _: one_text.changing, order=1000)
    runner.bench_time_func(
        "step 100/20/100/20, one text changes",
        alternating(one_text, lambda number: setattr(one_text, "changing", f"{number}".ljust(200, "y"))),
    )
    one_value = Setup(*size)
    one_value.harness.root.prompt.variable("changing", lambda _: one_value.value)
    one_value.harness.root.prompt.section("changing", "{{changing}}", order=1000)
    runner.bench_time_func(
        "step 100/20/100/20, one variable changes",
        alternating(one_value, lambda number: setattr(one_value, "value", str(number))),
    )


def first_assembly(loops: int) -> float:
    spent = 0.0
    for _ in range(loops):
        setup = Setup(*SIZES[1])
        started = time.perf_counter()
        setup.step()
        spent += time.perf_counter() - started
    return spent


def register_and_dispose(setup: Setup) -> Callable[[], None]:
    prompt = setup.harness.root.prompt
    return lambda: prompt.section("one more", "text", order=5).dispose()


def main() -> None:
    runner = pyperf.Runner(processes=3, values=3)
    for statement in (
        "pass",
        "import harness_core",
        "from harness_core import hookimpl",
        "from harness_core import Harness",
    ):
        runner.bench_command(f"python -c '{statement}'", [sys.executable, "-c", statement])
    for size in SIZES:
        runner.bench_time_func(f"unchanged step {'/'.join(map(str, size))}", timed(Setup(*size).step))
    for count in (0, 10, 100):
        bench_listeners(runner, count)
    runner.bench_time_func("register and dispose, nothing else", timed(register_and_dispose(Setup(0, 0, 0, 1))))
    runner.bench_time_func("register and dispose, 300/50/1000/50", timed(register_and_dispose(Setup(*SIZES[2]))))
    bench_install(runner)
    runner.bench_time_func("first step 100/20/100/20", first_assembly)
    bench_changes(runner)
    bench_edit(runner)
    runner.bench_time_func("unchanged step 100/20/100/20, scopes 4 deep", timed(Setup(*SIZES[1], depth=4).step))
    for sections in (10, 100, 1000, 3000):
        runner.bench_time_func(f"unchanged step, {sections} sections", timed(Setup(sections, 5, 10, 5).step))


if __name__ == "__main__":
    main()
