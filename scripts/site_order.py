"""The order and the titles of the documentation's parts; within a part, pages stand by title, decisions by number.

The pages of single codes are not listed beside the others: two tables lead to them, and so does the search.
"""

from __future__ import annotations

from typing import Any

PARTS = {
    "tutorial": "Tutorial",
    "how-to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
    "examples": "Examples",
    "decisions": "Decisions",
}


CODES = ("reference/errors/", "reference/findings/")
"""Folders with one page for each code."""


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Called by mkdocs once the pages are known."""

    def place(item: Any) -> int:
        folder = _folder(item)
        return list(PARTS).index(folder) if folder in PARTS else -1

    for item in nav.items:
        item.title = PARTS.get(_folder(item), item.title)
        if getattr(item, "children", None):
            item.children[:] = [child for child in item.children if not _of_codes(child)]
    nav.items.sort(key=place)
    return nav


def _of_codes(item: Any) -> bool:
    children = getattr(item, "children", None)
    return bool(children) and str(children[0].file.src_uri).startswith(CODES)


def _folder(item: Any) -> str:
    """The folder of a part; "" for the first page, which is in none."""
    children = getattr(item, "children", None)
    while children and getattr(children[0], "children", None):
        children = children[0].children
    return str(children[0].file.src_uri).partition("/")[0] if children else ""
