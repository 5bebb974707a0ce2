"""The lanes that a new plugin can contribute to, as parts of its source: section, context, variable, tools."""

from __future__ import annotations

from harness_core.scaffold._parts import Key, MakePart, Part, own, topic_key, value
from harness_core.scaffold.choices import Choices

__all__ = ["LANE_PARTS", "variable_name"]

SECTION_ORDER, CONTEXT_ORDER = 150, 150
"""Among guidance, which stands between 100 and 200; what the deployment says is at 0."""


def variable_name(choices: Choices) -> str:
    return f"{choices.name.replace('-', '_')}_topic"


def tool_name(choices: Choices) -> str:
    return f"{choices.name.replace('-', '_')}_look_up"


def section(choices: Choices) -> Part:
    has_tools = "tools" in choices.lanes
    bound = "\n    tools=[LOOK_UP.name]," if has_tools else ""
    names = ("Literal",) if choices.config and "variable" not in choices.lanes else ()
    given = ', config={"topic": "the {{sea}}"}' if choices.config else ""
    told = "the {{sea}}" if choices.config else choices.words
    asks = "to look terms up before it explains them" if has_tools else "to tell what it knows from what it assumes"
    return Part(
        row=(f"section `{choices.name}:how`", str(SECTION_ORDER), f"Asks the model {asks}."),
        imports={"harness_core": ("PluginContext", "hookimpl", *names)},
        keys=(topic_key(choices),),
        constants=f'''
            SECTION_ORDER = {SECTION_ORDER}
            """Among guidance, which stands between 100 and 200; what the deployment says is at 0."""
            ''',
        setup=f"""
ctx.prompt.section(
    f"{{NAME}}:how",
    {_section_text(choices, has_tools)},
    order=SECTION_ORDER,{bound}
)
""",
        test_imports={"harness_core": ("render_prompt",), "harness_core.testing": ("HarnessFactory",)},
        tests=f"""
            async def test_the_section_names_the_topic(harness: HarnessFactory) -> None:
                async with harness({choices.class_name}{given}) as running:
                    assert " {told}" in render_prompt(await running.assemble())
            """,
    )


def _section_text(choices: Choices, has_tools: bool) -> str:
    """The argument, as source: a reference where there is a variable, data as `Literal` where there is a setting."""
    if has_tools:
        before, after = "Look terms of ", " up with {LOOK_UP.name} before you explain them."
    else:
        before, after = "When you are asked about ", ", say what you know and what you only assume."
    if "variable" in choices.lanes:
        named = after.replace("{LOOK_UP.name}", tool_name(choices))
        return f'"{before}{{{{{variable_name(choices)}}}}}{named}"'
    if choices.config:
        return f'["{before}", Literal(config.topic), {"f" if has_tools else ""}"{after}"]'
    return f'f"{before}{{TOPIC}}{after}"'


def context(choices: Choices) -> Part:
    name = choices.class_name
    return Part(
        row=(
            f"context `{choices.name}:latest`",
            str(CONTEXT_ORDER),
            f"The latest fact that was given to `{name}.tell`; nothing before that.",
        ),
        imports={"harness_core": ("AssembleContext", "PluginContext", "hookimpl")},
        keys=(topic_key(choices),),
        constants=f'''
            CONTEXT_ORDER = {CONTEXT_ORDER}
            """The place among the contexts, which makes no difference to any other plugin."""
            ''',
        state='self._latest = ""',
        setup=f"""
            ctx.services.provide({name}, self)
            ctx.prompt.context(f"{{NAME}}:latest", self._latest_fact, order=CONTEXT_ORDER, interpolate=False)
            """,
        methods=f'''
            def tell(self, fact: str) -> None:
                """Keep a fact that changed; the model is told of it with the next step."""
                self._latest = fact

            def _latest_fact(self, context: AssembleContext) -> str:
                return f"The latest on {{{own(choices, "topic")}}}: {{self._latest}}" if self._latest else ""
            ''',
        test_imports={
            "harness_core": ("render_context_snapshot",),
            "harness_core.testing": ("HarnessFactory",),
        },
        tests=f"""
            async def test_a_fact_that_changed_is_told_and_the_system_text_stays(harness: HarnessFactory) -> None:
                async with harness({name}) as running:
                    before = await running.assemble()
                    plugin = running.root.services.get({name})
                    assert plugin is not None
                    plugin.tell("it is new")
                    after = await running.assemble()
                    assert "it is new" not in render_context_snapshot(before)
                    assert "The latest on {choices.words}: it is new" in render_context_snapshot(after)
                    assert after.sections == before.sections
            """,
    )


def variable(choices: Choices) -> Part:
    given = ', config={"topic": "the sea"}' if choices.config else ""
    told = '"the sea"' if choices.config else f'"{choices.words}"'
    return Part(
        row=(f"variable `{{{{{variable_name(choices)}}}}}`", "", "The topic, for the texts of others as well."),
        imports={"harness_core": ("PluginContext", "hookimpl")},
        keys=(topic_key(choices),),
        constants=f'VARIABLE = "{variable_name(choices)}"',
        setup=f"ctx.prompt.variable(VARIABLE, lambda context: {value(choices, 'topic')})",
        test_imports={"harness_core.testing": ("HarnessFactory",)},
        tests=f'''
            async def test_texts_can_refer_to_the_topic(harness: HarnessFactory) -> None:
                async with harness({choices.class_name}{given}) as running:
                    variables = (await running.assemble()).variables
                    assert variables == {{"{variable_name(choices)}": {told}}}
            ''',
    )


def tools(choices: Choices) -> Part:
    entries = own(choices, "entries")
    default = '{"example": "Something that stands for all of its kind."}'
    if choices.config:
        given, answer = ', config={"entries": {"tide": "The sea, rising and falling."}}', "The sea, rising and falling."
        term = "tide"
    else:
        given, answer, term = "", "Something that stands for all of its kind.", "example"
    return Part(
        row=(f"tool `{tool_name(choices)}`", "", "Answers what a term means, from a table of entries."),
        imports={"harness_core": ("PluginContext", "ToolCall", "ToolOutcome", "ToolSchema", "hookimpl")},
        keys=(
            Key(
                name="entries",
                kind="dict[str, str]",
                default=default,
                field="attrs.field(factory=dict)",
                doc="What terms mean, by term.",
                toml='{ tide = "The sea, rising and falling." }' if choices.config else "",
            ),
        ),
        constants=f'''
            LOOK_UP = ToolSchema(
                "{tool_name(choices)}",
                "Look up what a term means, by its exact name.",
                {{
                    "type": "object",
                    "properties": {{"term": {{"type": "string", "description": "The term."}}}},
                    "required": ["term"],
                    "additionalProperties": False,
                }},
            )
            ''',
        setup="ctx.tools.register(LOOK_UP, self.look_up, parallel_safe=True)",
        methods=f'''
            def look_up(self, call: ToolCall) -> ToolOutcome:
                """Carry out a call; its arguments have been checked against the schema."""
                term: str = call.arguments["term"]
                meaning = {entries}.get(term)
                if meaning is None:
                    known = ", ".join({entries}) or "none"
                    return ToolOutcome(content=f"There is no entry {{term!r}}; there are: {{known}}.", error="NOT_FOUND")
                return ToolOutcome(content=meaning)
            ''',
        test_imports={
            "harness_core.models": ("ToolResultMessage",),
            "harness_core.testing": ("AgentFactory", "ScriptedAnswer", "ScriptedModel"),
        },
        tests=f'''
            async def test_the_tool_answers_from_its_entries(agent: AgentFactory, scripted_model: ScriptedModel) -> None:
                calls = [("{tool_name(choices)}", {{"term": term}}) for term in ("{term}", "moon")]
                scripted_model.add(ScriptedAnswer(calls=calls), "Done.")
                async with agent({choices.class_name}{given}) as it:
                    assert (await it.run("What do they mean?")).ok
                results = [each for each in scripted_model.requests[1].messages if isinstance(each, ToolResultMessage)]
                assert [each.text for each in results] == [
                    "{answer}",
                    "There is no entry 'moon'; there are: {term}.",
                ]
                assert [each.is_error for each in results] == [False, True]
            ''',
    )


LANE_PARTS: dict[str, MakePart] = {"section": section, "context": context, "variable": variable, "tools": tools}
