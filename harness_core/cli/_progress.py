"""Showing a turn while it happens: the answer on standard output, everything about it on standard error."""

from __future__ import annotations

from typing import Self

import click
from rich.console import Console
from rich.markup import escape

from harness_core.agent import Agent, TurnResult
from harness_core.models import TextDelta
from harness_core.session import AssistantChunk, Event, RequestRetry, ToolCallStarted, ToolResultLogged

__all__ = ["Progress"]

_SHOWN_ARGUMENTS = 100
"""Characters of a call's arguments: enough to see what is called."""


class Progress:
    """Follows an agent's session; ``quiet`` shows nothing."""

    def __init__(self, agent: Agent, *, quiet: bool) -> None:
        self._agent = agent
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._in_text = False

    def __enter__(self) -> Self:
        self._observation = self._agent.session.observe(self._follow)
        return self

    def __exit__(self, *_: object) -> None:
        self._observation.dispose()

    def _follow(self, event: Event) -> None:
        if self._quiet:
            return
        match event.data:
            case AssistantChunk(chunk=TextDelta(text=text)):
                click.echo(text, nl=False)
                self._in_text = True
            case ToolCallStarted(name=name, arguments=arguments):
                self._aside(f"[cyan]{escape(name)}[/] {escape(_short(arguments))}")
            case ToolResultLogged(message=message, error=error):
                size = len(message.text.encode("utf-8", errors="replace"))
                mark = "[red]failed[/]" if error else "[green]done[/]"
                self._aside(f"  {mark} {escape(message.name)}, {size} bytes")
            case RequestRetry(attempt=attempt, delay_ms=delay):
                self._aside(f"[yellow]the request failed; attempt {attempt} follows in {delay / 1000:.1f} s[/]")
            case _:
                pass

    def _aside(self, text: str) -> None:
        if self._in_text:
            click.echo()
            self._in_text = False
        self._console.print(text)

    def finish(self, result: TurnResult, log: str | None) -> None:
        """Say how the turn ended."""
        if self._quiet:
            return
        if self._in_text:
            click.echo()
            self._in_text = False
        if not result.ok:
            why = result.failure.message if result.failure is not None else result.detail or result.cause or ""
            self._console.print(f"[red]The turn ended as {result.reason}[/]{f': {escape(why)}' if why else '.'}")
        if log is not None:
            self._console.print(f"[dim]log: {escape(log)}[/]", soft_wrap=True)


def _short(arguments: str) -> str:
    return arguments if len(arguments) <= _SHOWN_ARGUMENTS else f"{arguments[:_SHOWN_ARGUMENTS]}…"
