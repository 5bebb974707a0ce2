"""The prefix cache from a log: what repeats, where it breaks, who did it, what it costs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from harness_core import Harness, HarnessError, Section, Source, ToolSchema, UserMessage, hookimpl
from harness_core.host import AgentSettings
from harness_core.inspect import CacheModel, Prices, analyse, logged_requests
from harness_core.inspect.wire import Layout, message_text
from harness_core.models import CallConfig, RequestHeader, ScriptedAnswer, ScriptedModel, Usage
from harness_core.session import (
    APPEND,
    HeaderWritten,
    LogContents,
    MemoryStore,
    RequestDispatch,
    Session,
    StepStart,
    SurfaceReplace,
    TurnStart,
    UserMessageLogged,
    read_log,
)
from tests.inspect._recorded import (
    SECTION_STEP,
    VARIABLE_STEP,
    Clock,
    Notes,
    answers,
    broken_run,
    recorded,
    source,
)

pytestmark = pytest.mark.anyio


def report(log: LogContents, **options: Any) -> Any:
    return analyse(logged_requests(log.info, log.events), **options)


async def test_both_broken_steps_are_found_and_both_causes_named() -> None:
    found = report(await broken_run())
    assert [each.request.dispatch.step for each in found.breaks] == [SECTION_STEP, VARIABLE_STEP]
    section, variable = (each.break_ for each in found.breaks)
    assert (section.cause.kind, section.cause.name, section.cause.what) == ("section", "notes:all", "changed")
    assert (section.cause.owner.plugin, section.cause.owner.distribution, section.cause.owner.version) == (
        "notes",
        "dist-notes",
        "1.2.3",
    )
    assert section.cause.before.endswith("tea")
    assert section.cause.after.endswith("coffee")
    assert (variable.cause.kind, variable.cause.name, variable.cause.within) == ("variable", "city", "places:here")
    assert (variable.cause.owner.plugin, variable.cause.owner.version) == ("places", "4.5.6")
    assert (variable.cause.before, variable.cause.after) == ("Paris", "Rome")
    assert section.also == variable.also == ()


async def test_the_offset_is_the_first_byte_that_differs() -> None:
    log = await broken_run()
    requests = logged_requests(log.info, log.events)
    found = report(log)
    for each in found.breaks:
        before, after = (_bytes(requests[number]) for number in (each.request.number - 2, each.request.number - 1))
        assert before[: each.break_.offset] == after[: each.break_.offset]
        assert before[each.break_.offset] != after[each.break_.offset]
        assert each.repeated == each.break_.offset


def _bytes(request: Any) -> bytes:
    layout = Layout.of(request, ("tools", "system", "messages"), None)
    data = layout.text().encode()
    assert len(data) == layout.size
    return data


async def test_whole_requests_repeat_all_of_the_one_before() -> None:
    found = report(await broken_run())
    broken = {SECTION_STEP, VARIABLE_STEP}
    for before, now in zip(found.requests, found.requests[1:], strict=False):
        assert (now.repeated == before.size) == (now.request.dispatch.step not in broken)
        assert now.size > before.size - 10
    assert found.requests[0].repeated == found.requests[0].predicted == 0


async def test_tokens_are_the_services_own_where_it_counted() -> None:
    found = report(await broken_run(tokens=1_000))
    second = found.requests[1]
    assert second.counted
    assert second.tokens == 1_020
    assert second.predicted == 1_010, "the request before, whole"
    assert second.reported == 0
    assert not report(await broken_run()).requests[1].counted


@pytest.mark.spec("UC-29")
async def test_units_and_minimum_round_the_prediction_down_for_each_provider() -> None:
    log = await broken_run(tokens=1_000)
    assert report(log, model=CacheModel(unit=64)).requests[1].predicted == 960
    assert report(log, providers={"script": CacheModel(unit=128)}).requests[1].predicted == 896
    assert report(log, providers={"another": CacheModel(unit=128)}).requests[1].predicted == 1_010
    assert report(log, model=CacheModel(unit=64, minimum=1_024)).requests[1].predicted == 0


@pytest.mark.spec("UC-29")
async def test_the_render_order_decides_what_a_changed_tool_costs() -> None:
    class Changing:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("long", "x" * 2_000, order=1)
            ctx.prompt.tools(lambda c: [ToolSchema("probe", "first" if (c.step or 0) < 2 else "second")])

    log = await recorded([Clock(), source("changing", Changing())], answers(2))
    first = report(log, model=CacheModel(order=("tools", "system", "messages"))).breaks[0]
    last = report(log, model=CacheModel(order=("system", "tools", "messages"))).breaks[0]
    assert first.break_.cause == last.break_.cause
    assert first.break_.cause.kind == "tool"
    assert first.break_.cause.name == "probe"
    assert first.break_.cause.owner.version == "1.2.3"
    assert first.break_.offset < 200
    assert last.break_.offset > 2_000
    assert first.break_.lost_tokens > last.break_.lost_tokens


async def test_an_order_that_names_something_else_is_refused() -> None:
    with pytest.raises(HarnessError, match="render order"):
        CacheModel(order=("system", "messages"))


async def test_prices_give_costs_and_a_ranking_of_plugins() -> None:
    found = report(await broken_run(tokens=10_000), prices=Prices(input=2.0, cached=0.5, output=8.0))
    assert found.ranking == tuple(sorted(found.ranking, key=lambda each: -each.lost))
    by_plugin = {each.plugin: each for each in found.ranking}
    assert by_plugin["notes"].breaks == 1
    assert by_plugin["notes"].version == "1.2.3"
    assert by_plugin["notes"].things == ("section notes:all",)
    lost = by_plugin["notes"].lost_tokens
    assert by_plugin["notes"].lost == pytest.approx(lost * 1.5 / 1_000_000)
    assert found.cost == pytest.approx(sum((10_000 + 10 * step) * 2.0 + 5 * 8.0 for step in range(1, 11)) / 1_000_000)


async def test_a_token_counter_of_ones_own_is_used() -> None:
    found = report(await broken_run(), count_tokens=lambda text: len(text.split()))
    log = await broken_run()
    first = logged_requests(log.info, log.events)[0]
    assert found.requests[0].tokens == len(_bytes(first).decode().split())


async def test_what_the_services_template_adds_is_told_apart_where_it_counted() -> None:
    """A service that spells 50 tokens around its tools and 3 around each message, counted in words otherwise."""

    def count(text: str) -> int:
        return len(text.split())

    def answer(request: Any, step: int) -> ScriptedAnswer:
        header = request.header
        texts = [*(tool.canonical for tool in header.tools), header.system, *map(message_text, request.messages)]
        words = count("".join(texts[: len(header.tools) + 1]) + "\n".join(texts[len(header.tools) + 1 :]))
        usage = Usage(input_tokens=words + 50 + 3 * (len(request.messages) + 1))
        return ScriptedAnswer(calls=[("work", {})] if step < 5 else [], text="well", usage=usage)

    script = [lambda request, step=step: answer(request, step) for step in range(1, 6)]
    log = await recorded([Clock(), source("notes", Notes())], script)
    (broken,) = report(log, count_tokens=count).breaks
    before = _bytes(logged_requests(log.info, log.events)[broken.request.number - 2])
    assert broken.predicted == count(before[: broken.repeated].decode()) + 50


# --- other causes -----------------------------------------------------------------------------------------------------


class Ground:
    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("ground:rules", "Be brief.", order=10)
        ctx.tools.register(ToolSchema("work", "Do some work."), lambda call: "worked")
        ctx.tools.register(ToolSchema("rest", "Have a rest."), lambda call: "rested")


async def broken_by(listener: Any, *more: Any) -> Any:
    """The cause of the one break in three steps with a listener that acts from step 2 on."""
    plugins = [source("ground", Ground()), source("meddler", listener, "9.9"), *more]
    found = report(await recorded(plugins, answers(3)))
    (broken,) = found.breaks
    assert broken.request.dispatch.step == 2
    return broken.break_.cause


async def test_a_listener_that_rewrites_a_section_is_named_and_not_the_sections_plugin() -> None:
    class Rewriting:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any, context: Any) -> None:
            if context.step >= 2:
                assembly.replace_section(assembly.section("ground:rules").with_text("Be loud."))

    cause = await broken_by(Rewriting())
    assert (cause.kind, cause.name) == ("section", "ground:rules")
    assert (cause.owner.plugin, cause.owner.version) == ("meddler", "9.9")
    assert cause.registered_by is not None
    assert cause.registered_by.plugin == "ground"
    assert cause.owner.file is not None
    assert cause.owner.line == Rewriting.system_prompt_assemble.__code__.co_firstlineno + 3


async def test_where_a_listener_always_rewrites_the_one_whose_text_changed_is_named() -> None:
    class Always:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            section = assembly.section("moody:mood")
            assembly.replace_section(section.with_text(section.text + " (checked)"))

    class Moody:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("moody:mood", lambda c: "calm" if c.step < 2 else "wild", order=1)

    cause = await broken_by(Always(), source("moody", Moody()))
    assert (cause.owner.plugin, cause.name) == ("moody", "moody:mood")


async def test_a_listener_that_drops_adds_or_moves_is_named() -> None:
    class Dropping:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any, context: Any) -> None:
            if context.step >= 2:
                assembly.tools.remove(assembly.tool("rest"))

    class Reordering:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any, context: Any) -> None:
            if context.step >= 2:
                assembly.tools.reverse()

    class Adding:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any, context: Any) -> None:
            if context.step >= 2:
                from harness_core import Section

                assembly.sections.append(Section("extra", "More."))

    for listener, kind, what in (
        (Dropping(), "tool", "removed"),
        (Reordering(), "tool", "moved"),
        (Adding(), "section", "added"),
    ):
        cause = await broken_by(listener)
        assert (cause.kind, cause.what.split(" ")[0], cause.owner.plugin) == (kind, what, "meddler"), what


async def test_a_variable_that_a_listener_sets_is_the_listeners() -> None:
    class Setting:
        @hookimpl
        def system_prompt_assemble(self, assembly: Any, context: Any) -> Any:
            if context.step >= 2:
                return attrs.evolve(assembly, variables={**assembly.variables, "mood": "wild"})
            return None

    class Using:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("using:text", "The mood is {{mood}}, in {{town}}.", order=1)
            ctx.prompt.variable("mood", lambda _: "calm")
            ctx.prompt.variable("town", lambda _: "Bern")

    cause = await broken_by(Setting(), source("using", Using()))
    assert (cause.kind, cause.name, cause.owner.plugin) == ("variable", "mood", "meddler")
    assert cause.registered_by is not None
    assert cause.registered_by.plugin == "using"


class Released:
    """One release of a plugin: what it has in the lane that is asked for says which one."""

    def __init__(self, lane: str, version: str) -> None:
        self.lane, self.version = lane, version

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        if self.lane == "section":
            ctx.prompt.section("released:how", f"As {self.version} says.", order=5)
        elif self.lane == "variable":
            ctx.prompt.section("released:how", "As {{release}} says.", order=5)
            ctx.prompt.variable("release", lambda _: self.version)
        elif self.lane == "tool":
            ctx.tools.register(ToolSchema("act", f"As {self.version} says."), lambda call: "")

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> None:
        if self.lane == "listener":
            assembly.sections.append(Section("released:how", f"As {self.version} says."))


@pytest.mark.parametrize("lane", ["section", "variable", "tool", "listener"])
async def test_an_upgrade_between_two_turns_is_told_with_both_versions(lane: str) -> None:
    store = MemoryStore()
    settings = AgentSettings(store=store, config=CallConfig(provider="script", model="m1"))
    for version in ("1.0", "1.0", "2.0"):
        plugins = [source("ground", Ground()), source("released", Released(lane, version), version)]
        async with Harness(plugins=plugins, autoload=False, agents=settings) as harness:
            harness.root.models.register("script", ScriptedModel(otherwise="fine"))
            made = harness.resume_agent if store.heads() else harness.create_agent
            await (await made("s1")).run("go")
    (broken,) = report(read_log(store, "s1")).breaks
    assert broken.break_ is not None
    assert str(broken.break_.cause).endswith(" by released (dist-released 2.0), which was 1.0 before")
    assert broken.break_.cause.to_json()["upgraded_from"] == "1.0"


async def test_another_model_breaks_everything_and_is_a_setting() -> None:
    class Switching:
        @hookimpl
        def agent_request(self, config: Any, step: Any) -> Any:
            return attrs.evolve(config, model="m2") if step.step >= 2 else None

    cause = await broken_by(Switching())
    assert (cause.kind, cause.name, cause.before, cause.after) == ("setting", "model", "m1", "m2")


async def test_a_temperature_breaks_nothing() -> None:
    class Warming:
        @hookimpl
        def agent_request(self, config: Any, step: Any) -> Any:
            return attrs.evolve(config, temperature=step.step / 10)

    log = await recorded([source("ground", Ground()), Warming()], answers(3))
    assert report(log).breaks == []


async def test_several_differences_at_once_are_all_told_the_first_one_first() -> None:
    class Both:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("one", lambda c: f"one {c.step}", order=1)
            ctx.prompt.section("two", lambda c: f"two {c.step}", order=2)

    found = report(await recorded([Ground(), source("both", Both())], answers(2)))
    (broken,) = found.breaks
    assert broken.break_.cause.name == "one"
    assert [each.name for each in broken.break_.also] == ["two"]


def test_a_compaction_is_named_with_the_plugin_behind_it() -> None:
    session = Session.create("c", cwd="/")
    header = RequestHeader(config=CallConfig(provider="p", model="m"), system="x")
    provenance = {"plugins": {"compaction": {"distribution": "d", "version": "2.0"}}}
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    first = [
        session.append(UserMessageLogged(message=UserMessage(id=str(n), content="long " * 50)), APPEND)
        for n in range(3)
    ]
    session.append(HeaderWritten(header=header, reason="initial", provenance=provenance))
    session.append(RequestDispatch(turn=1, step=1, attempt=1, digest=session.request_digest()))
    summary = UserMessage(id="s", content="In short.", source=Source("plugin", "recall", "compaction"))
    seqs = [event.seq for event in first[:2]]
    session.append(UserMessageLogged(message=summary), SurfaceReplace(start=seqs[0], end=seqs[1], sources=seqs))
    session.append(RequestDispatch(turn=1, step=1, attempt=2, digest=session.request_digest()))
    found = analyse(logged_requests(session.info, session.events))
    (broken,) = found.breaks
    assert broken.break_ is not None
    cause = broken.break_.cause
    assert (cause.kind, cause.owner.plugin, cause.owner.version) == ("compaction", "compaction", "2.0")
    assert broken.break_.lane == "messages"
    assert found.requests[1].size < found.requests[0].size


async def test_a_log_without_provenance_still_says_where_the_prefix_breaks() -> None:
    session = Session.create("c", cwd="/")
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    session.append(UserMessageLogged(message=UserMessage(id="1", content="hi")), APPEND)
    for attempt, system in enumerate(("same start, one", "same start, two"), start=1):
        header = RequestHeader(config=CallConfig(provider="p", model="m"), system=system)
        session.append(HeaderWritten(header=header, reason="initial" if attempt == 1 else "change"))
        session.append(RequestDispatch(turn=1, step=1, attempt=attempt, digest=session.request_digest()))
    (broken,) = analyse(logged_requests(session.info, session.events)).breaks
    assert broken.break_ is not None
    assert broken.break_.offset == len("same start, ")
    assert broken.break_.cause.kind == "system"
    assert broken.break_.cause.owner.name == "unknown"


def test_a_retry_repeats_everything() -> None:
    session = Session.create("c", cwd="/")
    header = RequestHeader(config=CallConfig(provider="p", model="m"), system="x")
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    session.append(UserMessageLogged(message=UserMessage(id="1", content="hi")), APPEND)
    session.append(HeaderWritten(header=header, reason="initial"))
    for attempt in (1, 2):
        session.append(RequestDispatch(turn=1, step=1, attempt=attempt, digest=session.request_digest()))
    again = analyse(logged_requests(session.info, session.events)).requests[1]
    assert again.repeated == again.size
    assert again.break_ is None


async def test_what_a_model_reads_holds_no_ids_and_no_sources() -> None:
    text = message_text(UserMessage(id="secret-id", content="hello", source=Source("plugin", "notice", "some-plugin")))
    assert "secret-id" not in text
    assert "some-plugin" not in text
    assert "hello" in text


async def test_reports_are_plain_json() -> None:
    import json

    found = json.loads(json.dumps(report(await broken_run()).to_json()))
    assert found["requests"][3]["break"]["cause"]["plugin"] == "notes"
    assert found["ranking"][0]["breaks"] == 1


@pytest.mark.spec("UC-12")
async def test_a_section_that_keeps_changing_comes_with_the_advice_to_make_it_a_context() -> None:
    class Restless:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.section("restless:notes", lambda c: f"note {c.step}", order=1)

    found = report(await recorded([Clock(), source("restless", Restless())], answers(4)))
    assert found.ranking[0].plugin == "restless"
    assert "make it a context" in found.ranking[0].advice


async def test_a_long_log_is_analysed_in_one_pass() -> None:
    """Each message is measured once, however many requests hold it."""
    session = Session.create("long", cwd="/")
    header = RequestHeader(config=CallConfig(provider="p", model="m"), system="x")
    session.append(HeaderWritten(header=header, reason="initial"))
    for turn in range(1, 200):
        session.append(TurnStart(turn=turn))
        session.append(StepStart(turn=turn, step=1))
        session.append(UserMessageLogged(message=UserMessage(id=str(turn), content="hi")), APPEND)
        session.append(RequestDispatch(turn=turn, step=1, attempt=1, digest=session.request_digest()))
        from harness_core.session import StepEnd, TurnEnd

        session.append(StepEnd(turn=turn, step=1))
        session.append(TurnEnd(turn=turn, reason="completed"))
    requests = logged_requests(session.info, session.events)
    previous = None
    for request in requests:
        layout = Layout.of(request, ("tools", "system", "messages"), previous)
        if previous is not None:
            assert layout.ends is previous.ends
        previous = layout
