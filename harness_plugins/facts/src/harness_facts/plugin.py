"""The plugin: facts as contexts and variables, and a look at git in each assembly.

What changes while an agent works is a context, never a section: a changed fact is one more message, and no byte of the
prefix.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from harness_core import AssembleContext, PluginContext, PromptAssembly, Shell, hookimpl
from harness_core.tools import ShellResult
from harness_facts._git import QUERY, state_of
from harness_facts._texts import approvals_text, delegation_text, files_text, git_text
from harness_facts.config import Config
from harness_facts.permissions import PLUGIN, Permissions

__all__ = ["Facts"]

GIT, SANDBOX, APPROVAL, DELEGATION = "git:state", "sandbox:policy", "approval:policy", "subagent:delegation"
_ORDERS = {GIT: 105, SANDBOX: 110, APPROVAL: 115, DELEGATION: 120}
_OVERTIME = 1.5
"""A shell service that does not keep to its time is left after so many times of it."""


class Facts:
    """Tells an agent where and under which terms it works.

    Args:
        environ: where the user's shell is looked up.
        system: the name of the operating system.
    """

    name = PLUGIN
    Config = Config

    def __init__(self, *, environ: Mapping[str, str] | None = None, system: str | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._system = system if system is not None else platform.system()
        self._ctx: PluginContext | None = None
        self._permissions: Permissions | None = None
        self._complained = False

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        config: Config = ctx.config
        self._ctx = ctx
        if config.sandbox or config.approval:
            self._permissions = Permissions(config, ctx.harness.agents.surroundings.new_id)
            ctx.services.provide(Permissions, self._permissions)
        contexts: list[tuple[bool, str, Callable[[AssembleContext], str] | str]] = [
            (config.git, GIT, ""),  # filled in the waterfall, where one may wait
            (config.sandbox, SANDBOX, self._files),
            (config.approval, APPROVAL, self._approvals),
            (config.delegation, DELEGATION, _delegation),
        ]
        for wanted, name, text in contexts:
            if wanted:
                ctx.prompt.context(name, text, order=_ORDERS[name], interpolate=False)
        if config.platform:
            shell = os.path.basename(self._environ.get("SHELL") or self._environ.get("COMSPEC") or "")
            ctx.prompt.variable("platform", lambda _: self._system or None, missing="empty")
            ctx.prompt.variable("shell", lambda _: shell or None, missing="empty")

    def _files(self, context: AssembleContext) -> str:
        if context.session is None or self._permissions is None:
            return ""
        found = self._permissions.files(context.session)
        return files_text(*found) if found is not None else ""

    def _approvals(self, context: AssembleContext) -> str:
        if context.session is None or self._permissions is None:
            return ""
        found = self._permissions.approvals(context.session)
        return approvals_text(found) if found is not None else ""

    @hookimpl(tryfirst=True)
    async def system_prompt_assemble(self, assembly: PromptAssembly, context: AssembleContext) -> None:
        """Fill in what git says of the working directory; nothing where it does not."""
        entry = assembly.context(GIT)
        if self._ctx is None or entry is None or context.cwd is None:
            return
        if entry.origin is None or entry.origin.plugin != self._ctx.name:
            return  # somebody put something else in its place
        service: type[Any] = Shell
        shell: Shell | None = self._ctx.services.get(service, context.scope)
        if shell is None:
            return
        result = await self._asked(self._ctx, shell, context.cwd)
        state = state_of(result.exit_code, result.stdout) if result is not None else None
        if state is not None:
            assembly.replace_context(entry.with_text(git_text(state.branch, state.dirty)))

    async def _asked(self, ctx: PluginContext, shell: Shell, cwd: str) -> ShellResult | None:
        """What git prints; None where it does not, which is never a reason to fail."""
        seconds: float = ctx.config.git_seconds
        try:
            with anyio.move_on_after(seconds * _OVERTIME):
                return await shell.run(QUERY, cwd=cwd, timeout=seconds)
        except Exception as error:
            if not self._complained:  # once: it would be the same in every step
                self._complained = True
                ctx.log.warning("git could not be asked about the working directory: %s", error)
        return None


def _delegation(context: AssembleContext) -> str:
    depth = context.session.depth if context.session is not None else 0
    return delegation_text(depth) if depth > 0 else ""
