"""The plugin: the list of skills and the skills that users ask for, at the end of what enters a step; and the tool."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import attrs

from harness_core import (
    Enter,
    FileSystem,
    PluginContext,
    PreStep,
    Reject,
    ToolCall,
    ToolOutcome,
    ToolSchema,
    UserMessage,
    hookimpl,
)
from harness_core.scopes import ScopeNode
from harness_core.session import MessageTrail, Session
from harness_skills import _catalogue, _invocations, _texts as texts
from harness_skills._catalogue import Entry, digest_of, entries_in, entries_of, is_catalogue
from harness_skills._discovery import Discovery, Folder, Memory, Skill, discover, load
from harness_skills._manifest import ManifestError
from harness_skills.config import Config, folder_path

__all__ = ["Skills"]

_NOTHING = Discovery(skills=(), complete=True)


@attrs.define(eq=False)
class _Talk:
    """What is remembered of one session; it can all be lost."""

    trail: MessageTrail | None
    memory: Memory = attrs.field(factory=dict[str, Any])
    last_good: tuple[Skill, ...] | None = None
    """What the last complete look found."""


class Skills:
    """Shows which skills there are, and brings in those that are asked for.

    Args:
        user_home: the home directory of the operating system's user.
    """

    name = "skills"
    Config = Config

    def __init__(self, *, user_home: str | None = None) -> None:
        self._user_home = user_home if user_home is not None else os.path.expanduser("~")
        self._ctx: PluginContext | None = None
        self._talks: weakref.WeakKeyDictionary[Session, _Talk] = weakref.WeakKeyDictionary()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
        parameters = {
            "type": "object",
            "properties": {"name": {"type": "string", "description": texts.name_description()}},
            "required": ["name"],
            "additionalProperties": False,
        }
        schema = ToolSchema(ctx.config.tool, texts.tool_description(), parameters)
        ctx.tools.register(schema, self._load, parallel_safe=True)
        self._ctx = ctx
        yield
        self._ctx = None

    # --- a proposed step ----------------------------------------------------------------------------------------------

    @hookimpl
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Append the list where it changed, and then what users asked for."""
        decision = await call_next()
        ctx = self._ctx
        if ctx is None or isinstance(decision, Reject):
            return decision
        if not (decision.messages or step.results_due):
            return decision  # nothing begins here; a list alone is no reason to ask a model
        claimed = {message.id for message in step.claimed}
        asked = _invocations.asked_for(message for message in decision.messages if message.id in claimed)
        visible = self._is_visible(step, ctx)
        talk = self._talk(step.session)
        if not asked and not visible and (talk.trail is None or not talk.trail.ever):
            return decision
        found = await self._discover(ctx, talk, step.scope, step.cwd) if asked or visible else _NOTHING
        listed = self._listing(ctx, talk, found, visible=visible)
        added = [listed] if listed is not None else []
        added += await self._invoked(ctx, asked, [*found.skills, *(talk.last_good or ())], step)
        if not added or self._ctx is None:
            return decision
        return Enter((*decision.messages, *added))

    def _is_visible(self, step: PreStep, ctx: PluginContext) -> bool:
        """Does the model see this plugin's own tool, and not another one of its name?"""
        tools = step.assembly.tools if step.assembly is not None else ()
        return any(tool.name == ctx.config.tool and tool.origin == ctx.effects.origin for tool in tools)

    def _listing(self, ctx: PluginContext, talk: _Talk, found: Discovery, *, visible: bool) -> UserMessage | None:
        """The list that is due; None where the model has it already."""
        shown = talk.trail.visible if talk.trail is not None else ()
        last = shown[-1].source if shown else None
        entries: tuple[Entry, ...] = ()
        if visible:
            skills = found.skills
            if found.complete:
                talk.last_good = skills
            elif talk.last_good is not None:
                skills = talk.last_good
            elif last is not None and entries_in(last):
                return None
            entries = entries_of(skills, ctx.config.max_description)
        if last is not None:
            if last.data["digest"] == digest_of(entries):
                return None
        elif not entries and (talk.trail is None or not talk.trail.ever):
            return None
        return _catalogue.message_of(self._new_id(ctx), entries, ctx.config.tool, ctx.config.max_skills)

    async def _invoked(
        self, ctx: PluginContext, asked: dict[str, str], skills: Sequence[Skill], step: PreStep
    ) -> list[UserMessage]:
        messages: list[UserMessage] = []
        for name, asked_in in asked.items():
            skill = next((each for each in skills if each.name == name), None)
            files = self._files(ctx, step.scope)
            if skill is None or files is None:
                continue
            body: str | None = None
            text = texts.unavailable(name)
            try:
                body = (await load(files, skill.place, ctx.config.max_source_bytes)).body
                text = texts.invocation(name, skill.folder, body)
            except (OSError, ValueError, ManifestError) as error:
                ctx.log.warning("The skill %s, which a user asked for, cannot be read: %s", name, error)
            messages.append(_invocations.message_of(self._new_id(ctx), name, text, body, asked_in))
        return messages

    # --- the tool -----------------------------------------------------------------------------------------------------

    async def _load(self, call: ToolCall) -> ToolOutcome:
        ctx, name = self._ctx, call.arguments["name"]
        files = self._files(ctx, call.scope) if ctx is not None else None
        if ctx is None or files is None:
            return ToolOutcome(content=texts.unknown(name, []), error="unknown")
        found = await self._discover(ctx, self._talk(call.session), call.scope, call.cwd)
        skill = found.find(name)
        if skill is None:
            return ToolOutcome(content=texts.unknown(name, [each.name for each in found.skills]), error="unknown")
        try:
            manifest = await load(files, skill.place, ctx.config.max_source_bytes)
        except (OSError, ValueError, ManifestError) as error:
            ctx.log.warning("The skill %s cannot be read: %s", name, error)
            return ToolOutcome(content=texts.unavailable(name), error="unavailable")
        return ToolOutcome(content=texts.loaded(name, skill.folder, manifest.body))

    # --- looking ------------------------------------------------------------------------------------------------------

    async def _discover(self, ctx: PluginContext, talk: _Talk, scope: ScopeNode, cwd: str | None) -> Discovery:
        files, config = self._files(ctx, scope), ctx.config
        if files is None or cwd is None:
            return _NOTHING

        def report(place: str, why: str) -> None:
            ctx.log.warning("%s is no skill: %s.", place, why)

        folders = [Folder(folder_path(each, cwd, self._user_home), each.rstrip("/")) for each in config.folders]
        return await discover(files, folders, config.max_source_bytes, talk.memory, report)

    def _files(self, ctx: PluginContext, scope: ScopeNode) -> FileSystem | None:
        service: type[Any] = FileSystem
        found: FileSystem | None = ctx.services.get(service, scope)
        return found

    def _talk(self, session: Session | None) -> _Talk:
        if session is None:
            return _Talk(None)
        talk = self._talks.get(session)
        if talk is None:
            talk = self._talks[session] = _Talk(MessageTrail(session, is_catalogue))
        return talk

    def _new_id(self, ctx: PluginContext) -> str:
        return ctx.harness.agents.surroundings.new_id()
