"""The page: opened, searched, expanded and printed in a real browser; nothing in a prompt can run there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from harness_core import Harness, PromptSettings, Section, ToolSchema, hookimpl
from harness_core.inspect import (
    CacheModel,
    Prices,
    analyse,
    cache_document,
    growth_findings,
    logged_requests,
    render_page,
    request_document,
    tool_writers,
    trace_document,
    traced_step,
)
from tests.inspect._browser import browser
from tests.inspect._large import LISTENERS, SECTIONS, TOOLS, large_page
from tests.inspect._recorded import SECTION_STEP, VARIABLE_STEP, broken_run
from tests.inspect._twelve import EXPECTED, EXPECTED_STEP
from tests.inspect.conftest import Looked

EVIL = (
    "<img src=x onerror=\"window.ran='img'\">",
    "</script><script>window.ran='script'</script>",
    "<svg onload=\"window.ran='svg'\"></svg>",
    "javascript:window.ran='url'",
    "@SCRIPT@ @DATA@ @TITLE@",
    "' onmouseover='window.ran=1' x='",
    "<!--<script>window.ran='comment'",
)


class Evil:
    """Puts every trick into every place that a page shows."""

    name = EVIL[0]

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        for number, text in enumerate(EVIL):
            ctx.prompt.section(f"{text} {number}", text, order=number)
            ctx.prompt.context(f"{text} {number}", text, order=number)
            ctx.prompt.variable(f"v{number}", lambda _, text=text: text)
            ctx.tools.register(ToolSchema(f"{text} {number}", text, {text: text}), lambda call: "")
        ctx.prompt.section("values", "".join(f"{{{{v{number}}}}}" for number in range(len(EVIL))), order=100)

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> None:
        assembly.sections.append(Section(EVIL[1], EVIL[2]))
        assembly.replace_tool(attrs.evolve(assembly.tools[0], description=EVIL[1]))


async def evil_page() -> str:
    async with Harness(PromptSettings(EVIL[0]), plugins=[Evil()], autoload=False) as harness:
        traced = await traced_step(harness, harness.root, list(EVIL))
        document = trace_document(traced.assembly, traced.step, tools=tool_writers(harness, harness.root))
    return render_page(EVIL[1], facts={EVIL[0]: EVIL[2]}, trace=document)


async def cache_page() -> str:
    log = await broken_run(tokens=2_000)
    requests = logged_requests(log.info, log.events)
    report = analyse(requests, model=CacheModel(unit=64), prices=Prices(input=2, cached=0.2, output=8))
    cache = cache_document(report, growth_findings(log.events))
    return render_page("Cache", cache=cache, trace=request_document(requests[-1]))


def trace_page(looked: Looked) -> str:
    document = trace_document(looked.traced.assembly, looked.traced.step, orders=looked.orders, tools=looked.tools)
    return render_page("The twelve", facts={"scope": "reviewer"}, trace=document)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_page_is_one_file_that_loads_nothing(looked: Looked) -> None:
    page = trace_page(looked)
    assert not re.findall(r"<(?:script|link|img|iframe|object)[^>]+(?:src|href)=[\"'](?!data:)", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;")
    assert "unsafe" not in policy[1]


def test_the_pages_code_has_no_way_to_make_html_of_text() -> None:
    folder = files("harness_core.inspect") / "page_files"
    for name in ("base.js", "trace.js", "cache.js", "main.js"):
        code = (folder / name).read_text(encoding="utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "fetch(",
        ):
            assert forbidden not in code, (name, forbidden)


def test_the_data_in_the_page_is_the_document() -> None:
    page = anyio.run(evil_page)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2, "the data and the code, and nothing that the data brought"
    data = json.loads(scripts[0])
    sections = {each["name"]: each for each in data["trace"]["lanes"]["sections"]}
    for number, text in enumerate(EVIL):
        assert sections[f"{text} {number}"]["pieces"][0][0] == text


def test_a_lone_surrogate_does_no_harm() -> None:
    page = render_page("x", facts={"odd": "\ud800"})
    page.encode()


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(looked: Looked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, written before any browser starts: its event loop and ours do not go together."""
    where = tmp_path_factory.mktemp("pages")
    (where / "trace.html").write_text(trace_page(looked), encoding="utf-8")
    (where / "cache.html").write_text(anyio.run(cache_page), encoding="utf-8")
    (where / "evil.html").write_text(anyio.run(evil_page), encoding="utf-8")
    (where / "large.html").write_text(anyio.run(large_page), encoding="utf-8")
    return where


@pytest.fixture(scope="module")
def window(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = {"viewport": {"width": 1200, "height": 900}}
    with browser(tmp_path_factory.mktemp("profile"), **options) as context:
        yield context


@pytest.fixture
def opened(window: Any, folder: Path) -> Iterator[Any]:
    """``opened("trace")``: the page, with everything that goes wrong in it collected in ``page.problems``."""
    pages: list[Any] = []

    def open_page(name: str) -> Any:
        page = window.new_page()
        pages.append(page)
        page.problems = []
        page.requested = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: page.problems.append("dialog"))
        page.on("request", lambda request: page.requested.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        page.locator("html[data-ready]").wait_for()
        return page

    yield open_page
    for page in pages:
        assert page.problems == []
        page.close()


def lane(page: Any, title: str) -> Any:
    return page.locator("details.lane", has=page.locator(f"summary:has-text('{title}')")).first


def counted(locator: Any, number: int) -> None:
    """Wait until there are so many: what a page draws is there a moment after what asked for it."""
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(locator).to_have_count(number, timeout=30_000)


def unfold(summary: Any) -> None:
    """Open what is folded; a search may have opened it already."""
    if not summary.evaluate("element => element.parentElement.open"):
        summary.click()
    summary.locator("xpath=following-sibling::*").first.wait_for()


def test_the_page_names_exactly_the_right_listeners_with_their_changes(opened: Any) -> None:
    page = opened("trace")
    assemble, step = lane(page, "Listeners").locator("section").all()
    expected = {name: {f"{lane_}: {item} {kind}" for lane_, kind, item in what} for name, what in EXPECTED.items()}
    assert shown(assemble) == {
        name: {f"{text} from place 3 to 1" if text.endswith(" moved") else text for text in texts}
        for name, texts in expected.items()
    }
    assert list(shown(assemble)) == list(EXPECTED), "outermost first"
    assert {name: len(texts) for name, texts in shown(step).items()} == {
        name: len(what) for name, what in EXPECTED_STEP.items()
    }
    assert "spam" in step.inner_text()
    (conflict,) = assemble.locator(".problem").all()
    assert "'house:rules': shouting (rewritten), undone by whisper" in conflict.inner_text()
    tools = lane(page, "Tools")
    unfold(tools.locator("summary").first)
    changed = {item.inner_text() for item in tools.locator("details.item:has(.badge.changed) .name").all()}
    assert changed == {"beta", "gamma"}


def shown(section: Any) -> dict[str, set[str]]:
    """By listener: the changes that stand in its own part, without those of listeners further in."""
    found: dict[str, set[str]] = {}
    for run in section.locator("details.run").all():
        name = run.locator(":scope > summary .name").inner_text().strip()
        own = run.locator(":scope > .inside > .phase > .change > span").all()
        found[name] = {re.sub(r"\s+", " ", change.inner_text()) for change in own}
    return found


def test_a_piece_of_the_prompt_shows_its_chain_on_hover_and_on_focus(opened: Any) -> None:
    page = opened("trace")
    tip = page.locator("#tip")
    whisper = page.locator(".piece", has_text="Whisper.")
    whisper.hover()
    tip.wait_for()
    for said in ("whisper in system_prompt_assemble", "_twelve.py", "registered by ground", "changed by shouting"):
        assert said in tip.inner_text()
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    page.locator(".piece.value").focus()
    assert "{{city}} from travel" in tip.inner_text()
    assert "the reference was put there by ground" in tip.inner_text()
    assert page.locator(".piece.value").get_attribute("aria-describedby") == "tip"


def test_pieces_of_one_plugin_are_lit_by_its_button(opened: Any) -> None:
    page = opened("trace")
    button = page.get_by_role("button", name="travel")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert {piece.text_content() for piece in page.locator(".piece.lit").all()} == {"Rome"}
    button.click()
    counted(page.locator(".prompt.dim"), 0)


def test_search_finds_opens_and_can_be_taken_back(opened: Any) -> None:
    page = opened("trace")
    page.keyboard.press("/")
    page.keyboard.type("lovely")
    page.locator("#hits", has_text="hits in").wait_for()
    hits = page.locator("#hits")
    assert hits.inner_text() == "2 hits in 2 lanes", "the listener and the tool"
    lane(page, "Tools").locator("details.item", has_text="alpha").wait_for(state="hidden")
    page.keyboard.press("Enter")
    assert hits.inner_text() == "1 of 2 hits"
    assert page.evaluate("document.activeElement.closest('details').open")
    page.keyboard.press("n")
    assert hits.inner_text() == "2 of 2 hits"
    page.locator("#search").focus()
    page.keyboard.press("Escape")
    assert hits.inner_text() == ""
    lane(page, "Tools").locator("details.item", has_text="alpha").wait_for()


def test_everything_can_be_reached_and_opened_with_the_keyboard_alone(opened: Any) -> None:
    page = opened("trace")
    for _ in range(400):
        page.keyboard.press("Tab")
        text = page.evaluate("document.activeElement.textContent")
        if text.startswith("Variables"):
            break
    variables = lane(page, "Variables")
    page.keyboard.press("Enter")
    assert variables.evaluate("element => element.open")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert variables.locator("details.item").first.evaluate("element => element.open")
    assert "ParisRome" in variables.locator(".diff").inner_text()


def test_all_lanes_open_and_close(opened: Any) -> None:
    page = opened("trace")
    page.get_by_role("button", name="Open all").click()
    counted(page.locator("details:not([open])"), 0)
    page.get_by_role("button", name="Close all").click()
    counted(page.locator("details[open]"), 0)


def test_printing_opens_everything_and_puts_it_back(opened: Any, tmp_path: Path) -> None:
    page = opened("trace")
    before = page.locator("details[open]").count()
    page.evaluate(
        "addEventListener('beforeprint', () => { window.openWhilePrinting = document.querySelectorAll('details:not([open])').length; })"
    )
    page.pdf(path=str(tmp_path / "page.pdf"))
    assert page.evaluate("window.openWhilePrinting") == 0
    counted(page.locator("details[open]"), before)
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    page.emulate_media(media="print")
    page.locator(".controls").wait_for(state="hidden")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_light_and_dark(opened: Any, scheme: str) -> None:
    """Contrast of at least 4.5 to 1 (WCAG AA) for every text on whatever it stands on."""
    page = opened("trace")
    page.emulate_media(color_scheme=scheme)
    page.get_by_role("button", name="Open all").click()
    worst = page.evaluate(CONTRAST)
    assert worst["ratio"] >= 4.5, worst
    assert worst["dark"] == (scheme == "dark")


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const over = (top, under) => { const a = top[3] / 255; return [0, 1, 2].map((i) => top[i] * a + under[i] * (1 - a)); };
  const ground = (element) => { const layers = [];
    for (let each = element; each; each = each.parentElement) { const c = rgba(getComputedStyle(each).backgroundColor); if (c[3]) layers.push(c); if (c[3] === 255) break; }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
  let worst = {ratio: 99};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || ['SCRIPT', 'OPTION'].includes(element.tagName)) continue;
    const under = ground(element), ink = over(rgba(getComputedStyle(element).color), under);
    const [a, b] = [light(ink), light(under)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < worst.ratio) worst = {ratio, text: node.data.slice(0, 40), tag: element.className || element.tagName};
  }
  worst.dark = light(ground(document.body)) < .2;
  return worst;
}"""


def test_the_colours_can_be_chosen_whatever_the_system_has(opened: Any) -> None:
    page = opened("trace")
    button = page.locator("#theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.inner_text(), page.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert [name for name, _ in seen] == ["Colours: light", "Colours: dark", "Colours: system"]
    assert seen[0][1] == "rgb(255, 255, 255)"
    assert seen[1][1] != seen[0][1]


def test_the_cache_chart_shows_its_breaks_with_their_causes(opened: Any) -> None:
    page = opened("cache")
    requests = page.locator(".chart .request")
    counted(requests, 10)
    marked = [number for number, each in enumerate(requests.all(), start=1) if each.locator(".break").count()]
    assert marked == [SECTION_STEP, VARIABLE_STEP]
    requests.nth(SECTION_STEP - 1).focus()
    page.locator(".detail", has_text="section 'notes:all' changed by notes (dist-notes 1.2.3)").wait_for()
    page.locator(".detail", has_text="Notes: coffee").wait_for()
    page.keyboard.press("Shift+ArrowRight")
    assert requests.nth(VARIABLE_STEP - 1).evaluate("element => element === document.activeElement")
    page.keyboard.press("ArrowLeft")
    assert f"Request {VARIABLE_STEP - 1} " in page.locator(".detail").inner_text()
    assert page.locator(".chart .request[tabindex='0']").count() == 1
    requests.nth(VARIABLE_STEP - 1).hover()
    page.locator(".detail", has_text="variable 'city' in section 'places:here' changed by places").wait_for()
    assert "The prefix broke" in requests.nth(SECTION_STEP - 1).get_attribute("aria-label")
    table = page.locator("table", has_text="Plugins by what their changes cost").inner_text()
    assert "places 4.5.6" in table
    unfold(page.locator("summary", has_text="All requests as a table"))
    rows = page.locator("table").last.locator("tbody tr")
    counted(rows, 10)
    assert "notes:all" in rows.nth(SECTION_STEP - 1).inner_text()


def test_a_recorded_request_is_shown_in_colours_without_any_plugin(opened: Any) -> None:
    page = opened("cache")
    value = page.locator(".piece.value")
    assert value.text_content() == "Rome"
    assert value.get_attribute("data-plugin") == "places"
    value.focus()
    page.locator("#tip", has_text="{{city}} from places (dist-places 4.5.6)").wait_for()
    counted(page.locator("details.lane > summary", has_text="Listeners"), 0)
    messages = lane(page, "Messages")
    unfold(messages.locator("summary").first)
    counted(messages.locator("details.item"), 19)


def test_nothing_in_a_prompt_runs_and_nothing_is_loaded(opened: Any) -> None:
    page = opened("evil")
    page.get_by_role("button", name="Open all").click()
    for piece in page.locator(".piece").all():
        piece.hover()
    page.locator("#search").fill("onerror")
    page.locator("#hits", has_text="hit").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.querySelectorAll('main img, main svg, main script, main iframe').length") == 0
    assert [url for url in page.requested if not url.startswith(("file:", "data:"))] == []
    texts = page.locator(".prompt").inner_text()
    for text in EVIL:
        assert text in texts
    assert page.title() == EVIL[1]
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); }"
    )
    assert page.evaluate("window.ran") is None, "even a script that got in would not run"
    page.problems.clear()  # the browser reports the refusal


def test_a_large_page_is_made_as_it_is_looked_at(opened: Any) -> None:
    page = opened("large")
    assert page.evaluate("document.querySelectorAll('*').length") < 500, "little is made before anybody looks"
    page.locator("#search").fill(f"thing number {TOOLS - 1}.")
    page.locator("#hits", has_text="1 hit in 1 lane").wait_for()
    page.locator("#search").fill("listener-150")
    page.locator("#hits", has_text="hits in").wait_for()
    page.keyboard.press("Enter")
    run = page.locator("details.run[open]", has=page.locator(":scope > summary .name", has_text="listener-150")).last
    run.wait_for()
    assert "ground:section-150" in run.inner_text()
    page.locator("#search").fill("")
    unfold(page.locator("details.lane > summary", has_text="Sections"))
    counted(lane(page, "Sections").locator("details.item"), SECTIONS + 2 + LISTENERS // 10)
    page.get_by_role("button", name="Open all").click()
    counted(page.locator("details.run"), LISTENERS)
