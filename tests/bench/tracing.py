"""What tracing costs while it is off: dispatches and assemblies, against a build that has no place for it.

The other build is this one's source with the lines taken out that tracing and attribution need. Both run in one process,
round by round in turn, on the same harness; what is told is the median of the rounds' ratios. Tracing has been on and off
again before. More than 2 % for a dispatch is a failure.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

import anyio

from harness_core import Harness, ToolSchema, hookimpl
from harness_core.hooks import waterfall
from harness_core.inspect import tracing
from harness_core.prompt import assembly

ROUNDS = 1501
ITERATIONS = 80
ALLOWED = 1.02
LISTENERS = (0, 1, 10, 100)

SEAMS = {
    "harness_core.hooks.waterfall": (
        ("listeners, links, epoch = self._source.generation, scope.tree.generation, self._epoch",
         "listeners, links = self._source.generation, scope.tree.generation"),
        ("if cached[1] == listeners and cached[2] == links and cached[3] == epoch:",
         "if cached[1] == listeners and cached[2] == links:"),
        ("chain = self.compile(", "chain = compile_chain("),
        ("(chain, listeners, links, epoch)", "(chain, listeners, links)"),
    ),
    "harness_core.prompt.assembly": (
        ("    if registry.watch is not None:\n        return await registry.watch(dispatch, context)\n", ""),
        ("        given = (view.sections.records, view.contexts.records, view.tools.records, values)\n", ""),
        ('        _put(assembly, "_given", given)\n', ""),
    ),
}  # fmt: skip


def without(module: ModuleType) -> ModuleType:
    """The module as it would be without any place for tracing."""
    source = inspect.getsource(module)
    for seam, plain in SEAMS[module.__name__]:
        assert source.count(seam) == 1, f"{module.__name__} has changed: {seam!r}"
        source = source.replace(seam, plain)
    bare = ModuleType(f"{module.__name__}_without_tracing")
    sys.modules[bare.__name__] = bare
    exec(compile(source, f"{module.__file__} without tracing", "exec"), bare.__dict__)
    return bare


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waited for something")


def seconds(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    for _ in range(ITERATIONS):
        run()
    return time.perf_counter() - begun


def compared(ours: Callable[[], Any], bare: Callable[[], Any]) -> dict[str, float]:
    """Microseconds of both, and the median of the ratios of neighbouring rounds."""
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    ratios = []
    gc.disable()
    for number in range(ROUNDS):
        order = (("ours", ours), ("bare", bare)) if number % 2 else (("bare", bare), ("ours", ours))
        for name, run in order:
            times[name].append(seconds(run) / ITERATIONS * 1e6)
        ratios.append(times["ours"][-1] / times["bare"][-1])
    gc.enable()
    return {
        "ratio": round(statistics.median(ratios), 4),
        "us": round(statistics.median(times["ours"]), 3),
        "us_without": round(statistics.median(times["bare"]), 3),
    }


class Listening:
    def __init__(self, number: int) -> None:
        self.name = f"listening-{number}"

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any, call_next: Any) -> Any:
        return await call_next()


class Ground:
    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        for number in range(10):
            text = "x" * 200
            ctx.prompt.section(f"s{number}", (lambda c, text=text: text) if number % 2 else text, order=number)
        for number in range(5):
            ctx.prompt.context(f"c{number}", lambda c: "y" * 200, order=number)
            ctx.prompt.variable(f"v{number}", lambda c: "z")
        tools = tuple(ToolSchema(f"t{number}", "Does something.", {"type": "object"}) for number in range(10))
        ctx.prompt.tools(lambda c: tools)


async def measured() -> dict[str, dict[str, float]]:
    bare_hooks, bare_prompt = without(waterfall), without(assembly)
    found: dict[str, dict[str, float]] = {}
    for listeners in LISTENERS:
        async with Harness(plugins=[Ground(), *map(Listening, range(listeners))], autoload=False) as harness:
            with tracing(harness):
                await harness.assemble()
            hook, registry, root = harness.hooks.system_prompt_assemble, harness.prompt, harness.root
            bare = bare_hooks.Waterfall(hook.spec, harness._manager)
            value = await harness.assemble()
            context, same = None, lambda assembly: assembly

            def dispatch(hook: Any = hook) -> Any:
                return finished(hook.dispatch(root, value, context, same))

            def assemble(function: Any, hook: Any) -> Any:
                return finished(function(registry, hook, root))

            found[f"dispatch, {listeners} listeners"] = compared(dispatch, lambda: dispatch(bare))
            found[f"assembly 10/5/10/5, {listeners} listeners"] = compared(
                lambda: assemble(assembly.assemble, hook), lambda: assemble(bare_prompt.assemble, bare)
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output")
    output = parser.parse_args().output
    found = anyio.run(measured)
    for name, figures in found.items():
        print(f"{name:32} {figures['us']:8.3f} µs, {figures['us_without']:8.3f} without, ratio {figures['ratio']:.4f}")
    if output:
        with open(output, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)
    slow = [name for name, figures in found.items() if name.startswith("dispatch") and figures["ratio"] > ALLOWED]
    print(f"more than {ALLOWED - 1:.0%} slower: {', '.join(slow)}" if slow else "all dispatches are within 2 %")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
