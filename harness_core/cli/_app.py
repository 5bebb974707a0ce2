"""The command group: which subcommands there are, and where each is defined."""

from __future__ import annotations

from importlib import import_module

import click

from harness_core.host.discovery import core_version

__all__ = ["app"]

COMMANDS = {
    "cache": "harness_core.cli.cache:cache",
    "chat": "harness_core.cli.chat:chat",
    "check": "harness_core.cli.check:check",
    "config": "harness_core.cli.config:config",
    "diff": "harness_core.cli.lock:diff",
    "lock": "harness_core.cli.lock:lock",
    "explain": "harness_core.cli.explain:explain",
    "hooks": "harness_core.cli.hooks:hooks",
    "log": "harness_core.cli.log:log",
    "models": "harness_core.cli.models:models",
    "new-plugin": "harness_core.cli.new_plugin:new_plugin",
    "plugin": "harness_core.cli.plugin:plugin",
    "plugins": "harness_core.cli.plugins:plugins",
    "prompt": "harness_core.cli.prompt:prompt",
    "run": "harness_core.cli.run:run",
    "schema": "harness_core.cli.schema:schema",
    "trace": "harness_core.cli.trace:trace",
}
"""Name to ``module:function``; the module is imported when the command is asked for."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from harness_core._text import nearest

        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = nearest(args[0], COMMANDS)
            if near is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near!r}?", ctx) from None


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(core_version(), prog_name="harness")
def app() -> None:
    """Assemble prompts from plugins, run agents on them, and find out who contributed what."""
