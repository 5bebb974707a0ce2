"""The hooks that a new plugin can implement, as parts of its source: one small listener for each, and a test of it."""

from __future__ import annotations

import attrs

from harness_core.scaffold._parts import Imports, Key, MakePart, Part, own, test_head
from harness_core.scaffold.choices import Choices

__all__ = ["HOOK_PARTS"]

_CHAIN = {"collections.abc": ("Awaitable", "Callable")}
_AGENT = ("AgentFactory", "ScriptedModel")


def _given(choices: Choices, setting: str) -> str:
    return f", config={{{setting}}}" if choices.config else ""


def system_prompt_assemble(choices: Choices) -> Part:
    left_out = own(choices, "left_out")
    return Part(
        row=(
            "hook `system_prompt_assemble`",
            "",
            "Leaves out sections by name, after everybody inside has changed theirs.",
        ),
        imports={**_CHAIN, "harness_core": ("PromptAssembly", "hookimpl")},
        keys=(
            Key(
                name="left_out",
                kind="list[str]",
                default='["example:chatter"]',
                field="attrs.field(factory=list)",
                doc="Names of sections that the model is not told.",
                toml='["example:chatter"]',
            ),
        ),
        methods=f'''
            @hookimpl
            async def system_prompt_assemble(
                self, assembly: PromptAssembly, call_next: Callable[..., Awaitable[PromptAssembly]]
            ) -> PromptAssembly:
                """Leave out what the model is not to be told; the assembly's lists are fresh and may be changed."""
                result = await call_next()
                result.sections[:] = [each for each in result.sections if each.name not in {left_out}]
                return result
            ''',
        test_imports={"harness_core.testing": ("HarnessFactory",)},
        tests=f"""
            async def test_sections_are_left_out_by_name(harness: HarnessFactory) -> None:
                async with harness({choices.class_name}{_given(choices, '"left_out": ["example:chatter"]')}) as running:
                    running.root.prompt.section("example:chatter", "By the way ...", order=300)
                    running.root.prompt.section("example:rule", "Be brief.", order=301)
                    assembly = await running.assemble()
                    assert assembly.section("example:chatter") is None
                    assert assembly.section("example:rule") is not None
            """,
    )


def agent_pre_step(choices: Choices) -> Part:
    notice = own(choices, "notice")
    text = f"Background: this session may be about {choices.words}."
    told, given = ("Be quick.", _given(choices, '"notice": "Be quick."')) if choices.config else (text, "")
    return Part(
        row=("hook `agent_pre_step`", "", "Puts a notice behind what enters with the first step of a session."),
        imports={
            **_CHAIN,
            "harness_core": ("Enter", "PluginContext", "PreStep", "Reject", "Source", "UserMessage", "hookimpl"),
        },
        keys=(
            Key(
                name="notice",
                kind="str",
                default=f'"{text}"',
                doc="What the model is told once, at the beginning of a session.",
                toml=f'"{text}"',
            ),
        ),
        setup="self._new_id = ctx.harness.agents.surroundings.new_id",
        methods=f'''
            @hookimpl
            async def agent_pre_step(
                self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
            ) -> Enter | Reject:
                """Add a notice once; what begins no step, or begins a later one, is let through as it is."""
                decision = await call_next()
                if isinstance(decision, Reject) or not decision.messages or (step.turn, step.step) != (1, 1):
                    return decision
                source = Source("plugin", "notice", NAME, {{"summary": "a notice at the beginning"}})
                notice = UserMessage(id=self._new_id(), content={notice}, source=source)
                return Enter((*decision.messages, notice))
            ''',
        test_imports={"harness_core.testing": _AGENT},
        tests=f'''
            async def test_a_session_begins_with_a_notice(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
                scripted_model.add("Hello.", "Hello again.")
                async with agent({choices.class_name}{given}) as it:
                    for prompt in ("Good morning.", "Good evening."):
                        assert (await it.run(prompt)).ok
                notice = "{told}"
                texts = [each.text for each in scripted_model.requests[1].messages]
                assert texts.count(notice) == 1
                assert texts.index(notice) > texts.index("Good morning.")
            ''',
    )


def agent_request(choices: Choices) -> Part:
    return Part(
        row=("hook `agent_request`", "", "Sets the temperature of requests for which nobody has."),
        imports={"attrs": (), "harness_core": ("hookimpl",), "harness_core.models": ("CallConfig",)},
        keys=(
            Key(
                name="temperature",
                kind="float",
                default="0.2",
                doc="The temperature of requests that come without one.",
                toml="0.2",
            ),
        ),
        methods=f'''
            @hookimpl
            def agent_request(self, config: CallConfig) -> CallConfig | None:
                """Fill in what was left open; None goes on with what there is."""
                if config.temperature is not None:
                    return None
                return attrs.evolve(config, temperature={own(choices, "temperature")})
            ''',
        test_imports={
            "harness_core.models": ("CallConfig",),
            "harness_core.testing": ("HarnessFactory", "ScriptedModel"),
        },
        tests=f"""
            async def test_a_temperature_is_set_where_there_is_none(harness: HarnessFactory, scripted_model: ScriptedModel) -> None:
                scripted_model.add("Warm.", "Hot.")
                async with harness({choices.class_name}) as running:
                    for name, config in {{"open": CallConfig(), "chosen": CallConfig(temperature=1.0)}}.items():
                        agent = await running.create_agent(name, provider="scripted", config=config)
                        assert (await agent.run("How is it?")).ok
                assert [each.header.config.temperature for each in scripted_model.requests] == [0.2, 1.0]
            """,
    )


def agent_request_error(choices: Choices) -> Part:
    attempts = own(choices, "attempts")
    return Part(
        row=(
            "hook `agent_request_error`",
            "",
            "Sends a request again that can succeed later, a limited number of times.",
        ),
        imports={**_CHAIN, "harness_core": ("RequestFailure", "Retry", "hookimpl")},
        keys=(
            Key(
                name="attempts",
                kind="int",
                default="2",
                doc="How often a request is sent at most, the first time included.",
                toml="2",
            ),
        ),
        methods=f'''
            @hookimpl
            async def agent_request_error(
                self, failure: RequestFailure, call_next: Callable[..., Awaitable[Retry | None]]
            ) -> Retry | None:
                """Try once more, unless somebody inside has decided that already."""
                decision = await call_next()
                if decision is not None or not failure.facts.retryable or failure.attempt >= {attempts}:
                    return decision
                return Retry(delay=failure.facts.retry_after or 0.0, reason=failure.facts.code)
            ''',
        test_imports={"harness_core.testing": ("AgentFactory", "FailureFacts", "ScriptedModel")},
        tests=f"""
            async def test_a_request_is_sent_again_and_not_for_ever(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
                busy = FailureFacts(code="BUSY", message="Come back later.", retryable=True)
                scripted_model.add(busy, "Done.", busy, busy)
                async with agent({choices.class_name}) as it:
                    assert (await it.run("Once.")).ok
                    assert not (await it.run("Twice.")).ok
                assert len(scripted_model.requests) == 4
            """,
    )


def tool_call(choices: Choices) -> Part:
    longest = own(choices, "max_characters")
    default = 20_000
    limit, given = (4, _given(choices, '"max_characters": 4')) if choices.config else (default, "")
    return Part(
        row=("hook `tool_call`", "", "Cuts results of tools that are too long, and says so."),
        imports={**_CHAIN, "attrs": (), "harness_core": ("ToolCall", "ToolOutcome", "hookimpl")},
        keys=(
            Key(
                name="max_characters",
                kind="int",
                default=f"{default:_}",
                doc="How many characters of a tool's result the model gets.",
                toml=f"{default:_}",
            ),
        ),
        methods=f'''
            @hookimpl
            async def tool_call(self, call: ToolCall, call_next: Callable[..., Awaitable[ToolOutcome]]) -> ToolOutcome:
                """Let the call through, and shorten what it came to."""
                outcome = await call_next()
                longest = {longest}
                if len(outcome.text) <= longest:
                    return outcome
                return attrs.evolve(outcome, content=f"{{outcome.text[:longest]}} [cut after {{longest}} characters]")
            ''',
        test_imports={
            "harness_core": ("ToolSchema",),
            "harness_core.testing": ("AgentFactory", "ScriptedAnswer", "ScriptedModel"),
        },
        tests=f"""
            async def test_long_results_are_cut(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
                scripted_model.add(ScriptedAnswer(calls=[("count", {{}})]), "Done.")
                async with agent({choices.class_name}{given}) as it:
                    it.scope.tools.register(ToolSchema("count"), lambda call: "x" * {limit + 1})
                    assert (await it.run("Count.")).ok
                result = scripted_model.requests[1].messages[-1].text
                assert result == f"{{'x' * {limit}}} [cut after {limit} characters]"
            """,
    )


@attrs.frozen(kw_only=True)
class Observer:
    """An observer of a new plugin decides nothing; it writes down what happened, at a level that can be chosen.

    ``logs`` are the arguments of the call that logs; ``cause`` is what makes it happen in a test, and ``says`` what is
    written then, both as source.
    """

    hook: str
    arguments: str = ""
    about: str
    logs: str
    imports: Imports = attrs.field(factory=dict)
    cause: str
    cause_imports: Imports = attrs.field(factory=dict)
    says: str

    def __call__(self, choices: Choices) -> Part:
        log = f"_log.log({own(choices, 'log_level')}, {self.logs})" if choices.config else f"_log.debug({self.logs})"
        key = Key(
            name="log_level",
            kind="int",
            default="10",
            doc="The level of what is written to the log; 10 is DEBUG, 20 is INFO.",
            toml="10",
        )
        runs = "scripted_model" in self.cause
        kit = ("AgentFactory", "ScriptedModel") if runs else ("AgentFactory",)
        head = test_head(
            f"test_the_log_says_{self.about.replace(' ', '_')}",
            "agent: AgentFactory",
            *(["scripted_model: ScriptedModel"] if runs else []),
            "caplog: pytest.LogCaptureFixture",
        )
        return Part(
            row=(f"hook `{self.hook}`", "", f"Writes to the log {self.about}."),
            imports={"logging": (), "harness_core": ("hookimpl",), **self.imports},
            keys=(key,) if choices.config else (),
            constants="_log = logging.getLogger(__name__)",
            methods=f'''
@hookimpl
def {self.hook}(self{self.arguments}) -> None:
    """Write down {self.about}."""
    {log}
''',
            test_imports={"logging": (), "pytest": (), "harness_core.testing": kit, **self.cause_imports},
            tests=f'''
{head}
    caplog.set_level(logging.DEBUG, logger="{choices.module}")
    async with agent({choices.class_name}) as it:
        {self.cause.replace(NEWLINE, NEWLINE + "        ")}
        assert {self.says} in caplog.messages
''',
        )


NEWLINE = "\n"
_RUN = 'scripted_model.add("Hello.")\nassert (await it.run("Good morning.")).ok'
_OBSERVERS = (
    Observer(
        hook="system_prompt_change",
        about="that the prompt changed",
        logs='"the prompt changed"',
        cause='it.scope.prompt.section("example:rule", "Be brief.", order=300)',
        says='"the prompt changed"',
    ),
    Observer(
        hook="tool_registry_change",
        about="that the tools changed",
        logs='"the tools changed"',
        cause='it.scope.tools.register(ToolSchema("count"))',
        cause_imports={"harness_core": ("ToolSchema",)},
        says='"the tools changed"',
    ),
    Observer(
        hook="session_event",
        arguments=", event: Event",
        about="what is recorded in a session",
        logs='"event %s", event.type',
        imports={"harness_core.session": ("Event",)},
        cause=_RUN,
        says='"event turn/start"',
    ),
    Observer(
        hook="agent_status",
        arguments=", agent: Agent, status: str",
        about="what an agent has become",
        logs='"agent %s is %s", agent.id, status',
        imports={"harness_core.agent": ("Agent",)},
        cause=_RUN,
        says='f"agent {it.id} is running"',
    ),
    Observer(
        hook="agent_turn_stopping",
        arguments=", agent: Agent, turn: int",
        about="that a turn ends",
        logs='"agent %s ends turn %d", agent.id, turn',
        imports={"harness_core.agent": ("Agent",)},
        cause=_RUN,
        says='f"agent {it.id} ends turn 1"',
    ),
)

HOOK_PARTS: dict[str, MakePart] = {
    "system_prompt_assemble": system_prompt_assemble,
    "agent_pre_step": agent_pre_step,
    "agent_request": agent_request,
    "agent_request_error": agent_request_error,
    "tool_call": tool_call,
    **{each.hook: each for each in _OBSERVERS},
}
