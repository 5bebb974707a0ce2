"""``harness hooks``: who listens to a hook, in which order and why, who does not hear it, and what would be otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import click
from rich.text import Text

from harness_core._text import nearest
from harness_core.cli._common import Chosen, common_options, emit_json
from harness_core.cli._show import console, listener_text, place_text, plain_table
from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host.composition import PluginTable
from harness_core.inspect import HookOrder, OrderComparison, compare_orders, hook_order, hook_orders

__all__ = ["hooks"]


@click.command()
@click.argument("hook", required=False)
@click.option("--scope", "scopes", multiple=True, help="The scope to look from; give it twice to compare two.")
@click.option("--without", metavar="PLUGIN", help="Compare with the same composition without this plugin.")
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare with another composition.",
)
@common_options
def hooks(chosen: Chosen, hook: str | None, scopes: tuple[str, ...], without: str | None, against: Path | None) -> None:
    """Show the listeners of HOOK (of all hooks by default), outermost first, and why each stands where it stands.

    Listeners that the scope does not admit are listed with the reason.
    """
    if len(scopes) + bool(without) + bool(against) > 2 or len(scopes) > 2 or (without and against):
        raise click.UsageError("Compare two things: two scopes, or one composition with another.")
    known = (*WATERFALLS, *OBSERVERS)
    if hook is not None and hook not in known:
        near = nearest(hook, known)
        meant = f"Did you mean {near!r}?" if near else f"There are: {', '.join(known)}."
        raise click.UsageError(f"There is no hook called {hook!r}. {meant}")
    left = anyio.run(_orders, chosen, hook, scopes[0] if scopes else None)
    if len(scopes) == 2:
        right, names = anyio.run(_orders, chosen, hook, scopes[1]), (scopes[0], scopes[1])
    elif without is not None or against is not None:
        right = anyio.run(_orders, _other(chosen, without, against), hook, scopes[0] if scopes else None)
        names = ("with it", f"without {without}") if without is not None else ("here", str(against))
    else:
        _show_orders(chosen, left)
        return
    _show_comparisons(chosen, _compared(left, right), names)


async def _orders(chosen: Chosen, hook: str | None, scope_name: str | None) -> list[HookOrder]:
    async with chosen.harness() as harness:
        scope = harness.scope(scope_name) if scope_name and scope_name != harness.root.name else harness.root
        return [hook_order(harness, hook, scope)] if hook is not None else hook_orders(harness, scope)


def _other(chosen: Chosen, without: str | None, against: Path | None) -> Chosen:
    if against is not None:
        return attrs.evolve(chosen, file=against)
    assert without is not None
    table = chosen.composition.plugins.get(without, PluginTable())
    plugins = {**chosen.composition.plugins, without: attrs.evolve(table, enabled=False)}
    other = chosen.again()
    other.composition = attrs.evolve(chosen.composition, plugins=plugins)
    return other


def _compared(left: list[HookOrder], right: list[HookOrder]) -> list[OrderComparison]:
    by_hook = {order.hook: order for order in right}
    known = {order.hook: order for order in (*right, *left)}
    empty = {hook: attrs.evolve(order, listeners=(), filtered=()) for hook, order in known.items()}
    of_left = {order.hook: order for order in left}
    return [compare_orders(of_left.get(hook, empty[hook]), by_hook.get(hook, empty[hook])) for hook in known]


def _show_orders(chosen: Chosen, orders: list[HookOrder]) -> None:
    if chosen.as_json:
        emit_json({"hooks": [order.to_json() for order in orders]})
        return
    out = console()
    if not orders:
        out.print("Nobody listens to any hook.")
    for order in orders:
        kind = "outermost first" if order.waterfall else "in the order in which they are told"
        table = plain_table(
            "", "listener", "why here", "where", numbers=[""], title=f"{order.hook} in scope {order.scope}, {kind}"
        )
        for place, listener in enumerate(order.listeners, start=1):
            table.add_row(
                str(place), listener_text(listener), Text(listener.why), place_text(listener.file, listener.line)
            )
        for each in order.filtered:
            where = place_text(each.listener.file, each.listener.line)
            table.add_row("-", listener_text(each.listener), Text(f"not called: {each.reason}", style="yellow"), where)
        out.print(table)
        out.print()


def _show_comparisons(chosen: Chosen, comparisons: list[OrderComparison], names: tuple[str, str]) -> None:
    if chosen.as_json:
        shown: dict[str, Any] = {"left": names[0], "right": names[1]}
        emit_json({**shown, "hooks": [comparison.to_json() for comparison in comparisons]})
        return
    out = console()
    for comparison in comparisons:
        table = plain_table(names[0], names[1], "listener", "", numbers=names, title=comparison.hook)
        for row in comparison.rows:
            note = f"only {names[0]}" if row.right is None else f"only {names[1]}" if row.left is None else ""
            if row.moved:
                note = f"moved: {' -> '.join(dict.fromkeys(row.why))}"
            table.add_row(str(row.left or "-"), str(row.right or "-"), Text(row.name), Text(note, style="yellow"))
        out.print(table)
        out.print("the same order" if comparison.same else "")
