"""The `harness` command. One module for each subcommand, loaded when it is called; no logic of its own."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """The console script: exits 0, 1 (findings, a failed turn) or 2 (wrong usage)."""
    from harness_core.cli._app import app

    app(prog_name="harness")
