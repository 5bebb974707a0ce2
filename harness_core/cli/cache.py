"""``harness cache``: what each request of a log repeats, where the prefix breaks, by whom, and what that costs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from harness_core.cli._common import Chosen, common_options, emit_json
from harness_core.cli._show import console, plain_table, write_page
from harness_core.inspect import (
    CacheModel,
    CacheReport,
    GrowthFinding,
    Prices,
    analyse,
    cache_document,
    growth_findings,
    logged_requests,
    open_log,
    render_page,
    request_document,
)
from harness_core.inspect.wire import LANES

__all__ = ["cache"]


@click.command()
@click.argument("log", metavar="LOG")
@click.option("--unit", default=1, show_default=True, help="Tokens that a cache keeps together.")
@click.option("--minimum", default=0, show_default=True, help="Tokens below which nothing is cached.")
@click.option("--order", help="What stands before what in the prompt: tools,system,messages by default.")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME:unit=64,order=system-tools-messages",
    help="The same for one provider; may be repeated.",
)
@click.option("--price-input", default=0.0, help="Price of a million input tokens that are not cached.")
@click.option("--price-cached", default=0.0, help="Price of a million cached input tokens.")
@click.option("--price-output", default=0.0, help="Price of a million output tokens.")
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Also write a page.")
@common_options
def cache(
    chosen: Chosen,
    log: str,
    unit: int,
    minimum: int,
    order: str | None,
    providers: tuple[str, ...],
    price_input: float,
    price_cached: float,
    price_output: float,
    page: Path | None,
) -> None:
    """Show how the prefix cache fares over the session LOG (an id, or a log's file).

    Tokens are those that the service counted, and estimates (≈) where it did not. The prediction is for a cache that holds
    the request before; what the service reported stands beside it.
    """
    contents = open_log(log, chosen.composition.agent_settings(chosen.folder).store)
    requests = logged_requests(contents.info, contents.events)
    report = analyse(
        requests,
        model=_model({"unit": str(unit), "minimum": str(minimum), **({"order": order} if order else {})}),
        providers=dict(_provider(each) for each in providers),
        prices=Prices(input=price_input, cached=price_cached, output=price_output),
    )
    growth = growth_findings(contents.events)
    if page is not None:
        facts = {"session": contents.info.id, "requests": str(len(report.requests)), "breaks": str(len(report.breaks))}
        title = f"Prefix cache of session {contents.info.id}"
        last = request_document(requests[-1]) if requests else None
        write_page(page, render_page(title, facts=facts, cache=cache_document(report, growth), trace=last))
    if chosen.as_json:
        emit_json({**report.to_json(), "growth": [finding.to_json() for finding in growth]})
    else:
        _show(report, growth)


def _model(options: dict[str, str]) -> CacheModel:
    unknown = set(options) - {"unit", "minimum", "order"}
    numbers = {name: options[name] for name in ("unit", "minimum") if name in options}
    if unknown or not all(text.isdigit() for text in numbers.values()) or options.get("unit") == "0":
        raise click.UsageError("A cache is described by unit, minimum (whole numbers) and order (lanes).")
    lanes = options["order"].replace("-", ",").split(",") if "order" in options else None
    return CacheModel(
        unit=int(numbers.get("unit", 1)),
        minimum=int(numbers.get("minimum", 0)),
        order=lanes if lanes is not None else LANES,
    )


def _provider(text: str) -> tuple[str, CacheModel]:
    name, _, rest = text.partition(":")
    options = dict(each.split("=", 1) for each in rest.split(",") if "=" in each)
    if not name or not options:
        raise click.UsageError(f"--provider takes NAME:unit=...,order=..., not {text!r}.")
    return name, _model(options)


def _show(report: CacheReport, growth: list[GrowthFinding]) -> None:
    out = console()
    numbers = ("#", "bytes", "repeated", "tokens", "predicted", "reported")
    priced = report.cost > 0
    table = plain_table(*numbers[:1], "step", *numbers[1:], *(("cost",) if priced else ()), "prefix", numbers=numbers)
    for each in report.requests:
        estimated = "" if each.counted else "≈ "
        cells = [
            str(each.request.number),
            each.request.place,
            str(each.size),
            str(each.repeated),
            f"{estimated}{each.tokens}",
            str(each.predicted),
            "" if each.reported is None else str(each.reported),
            *([f"{each.cost:.5f}"] if priced else []),
        ]
        table.add_row(*cells, Text(_prefix(each.request.number, each.break_ is None), style=""))
    out.print(table)
    for each in report.breaks:
        found = each.break_
        assert found is not None
        out.print(
            Text(f"\nRequest {each.request.number} ({each.request.place}): the prefix breaks", style="bold yellow")
        )
        out.print(Text(f"  at byte {found.offset}, in {found.lane}: {found.cause}"), soft_wrap=True)
        lost = f", {found.lost:.5f}" if found.lost else ""
        out.print(Text(f"  {found.lost_tokens} tokens lost{lost}", style="dim"), soft_wrap=True)
        if found.cause.before or found.cause.after:
            out.print(Text(f"  - {found.cause.before!r}", style="red"), soft_wrap=True)
            out.print(Text(f"  + {found.cause.after!r}", style="green"), soft_wrap=True)
        for also in found.also:
            out.print(Text(f"  also: {also}", style="dim"), soft_wrap=True)
    _show_ranking(report)
    for finding in growth:
        out.print(Text(f"growth: {finding}", style="yellow"), soft_wrap=True)


def _prefix(number: int, whole: bool) -> str:
    return "first" if number == 1 else "whole" if whole else "broken"


def _show_ranking(report: CacheReport) -> None:
    out = console()
    if not report.ranking:
        out.print("\nNothing broke the prefix.")
        return
    out.print()
    numbers = ("breaks", "tokens lost", "cost")
    table = plain_table("plugin", *numbers, "what", "what would help", numbers=numbers, title="What changes cost")
    for each in report.ranking:
        name = each.plugin if each.version is None else f"{each.plugin} {each.version}"
        cost = f"{each.lost:.5f}" if each.lost else ""
        table.add_row(
            Text(name), str(each.breaks), str(each.lost_tokens), cost, Text(", ".join(each.things)), Text(each.advice)
        )
    out.print(table)
