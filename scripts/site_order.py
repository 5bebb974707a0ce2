"""The order of the documentation: its parts, and within the larger ones, what belongs together.

A page that is not named here stands at the end of its part, so that nothing is ever left out. Decisions stand by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.structure.nav import Section

PARTS = {
    "": "Start",
    "tutorial": "Tutorial",
    "how-to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
    "examples": "Examples",
    "decisions": "Decisions",
}

GROUPS: dict[str, dict[str, list[str]]] = {
    "tutorial": {"": ["first-plugin", "compose-an-agent"]},
    "how-to": {
        "Contribute to a prompt": ["sections", "tools", "contexts", "messages", "data"],
        "Work with others": ["listeners", "order", "scopes", "services", "observe"],
        "Make a plugin that lasts": ["test", "check-a-plugin", "publish", "coming-from"],
        "Put an agent together": [
            "compose",
            "agents",
            "connect-a-model",
            "workspace",
            "secrets",
            "retry-failed-requests",
            "upgrade",
            "change-while-running",
        ],
        "Look into it": ["find-out-why", "missing", "keep-the-cache-warm"],
        "Keep your own loop": ["own-loop", "own-loop-pydantic-ai", "own-loop-openai-agents", "own-loop-langchain"],
    },
    "reference": {
        "": [
            "command-line",
            "composition",
            "configuration",
            "hooks",
            "events",
            "model-adapters",
            "api",
            "compatibility",
            "errors",
            "findings",
            "words",
        ],
        "Code by code": ["errors/", "findings/"],
    },
    "examples": {"": ["README", "house-style/", "office-hours/", "unit-converter/", "redact/", "guard/"]},
    "explanation": {"": ["lanes", "assembly", "snapshots", "scopes", "log", "guarantees"]},
}
"""For a part its groups, each with the names of its pages (and folders) in order; one without a title stands at the top."""


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Called by mkdocs once the pages are known."""

    def place(item: Any) -> int:
        folder = _folder(item)
        return list(PARTS).index(folder) if folder in PARTS else len(PARTS)

    for item in nav.items:
        folder = _folder(item)
        item.title = PARTS.get(folder, item.title)
        if folder in GROUPS:
            item.children = _grouped(item, GROUPS[folder])
    nav.items.sort(key=place)
    nav.pages = [page for item in nav.items for page in _pages(item)]
    for page, before, after in zip(nav.pages, [None, *nav.pages], [*nav.pages[1:], None], strict=False):
        page.previous_page, page.next_page = before, after
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs for each page: the one about decisions ends with a list of them, by number."""
    if page.file.src_uri != "decisions/index.md":
        return markdown
    decisions = sorted(
        (file.src_uri.removeprefix("decisions/"), file.content_string.partition("\n")[0].removeprefix("# "))
        for file in files.documentation_pages()
        if file.src_uri.startswith("decisions/") and file is not page.file
    )
    return "\n".join([markdown, *(f"- {name[:4]} [{title}]({name})" for name, title in decisions), ""])


def _grouped(part: Any, groups: dict[str, list[str]]) -> list[Any]:
    left = {_name(child): child for child in part.children}
    found: list[Any] = []
    for title, names in groups.items():
        members = [left.pop(name) for name in names if name in left]
        if not title:
            found += members
        elif members:
            group = Section(title, members)
            group.parent = part
            for member in members:
                member.parent = group
            found.append(group)
    return [*found, *left.values()]


def _name(item: Any) -> str:
    """A page's name within its part; a folder's is its own with a slash, so that both may be called the same."""
    first = next(_pages(item)).file.src_uri.removesuffix(".md").split("/")
    if item.is_page:
        return str(first[-1])
    return f"{first[-2]}/"


def _pages(item: Any) -> Iterator[Any]:
    if item.is_page:
        yield item
    for child in item.children or ():
        yield from _pages(child)


def _folder(item: Any) -> str:
    """The folder of a part; "" for the first page, which is in none."""
    return "" if item.is_page else str(next(_pages(item)).file.src_uri).partition("/")[0]
