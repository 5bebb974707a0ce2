"""Check the built documentation site: every link leads to a page and a place that are there, and nothing is fetched.

``python scripts/check_site.py SITE`` walks the HTML files. Links to other hosts are left alone; what a page *loads* (scripts,
styles, pictures) must come from the site itself, since the site is to be read without a network. Needs no network either.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
LOADING_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}


class Page(HTMLParser):
    """What one HTML file links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and LOADING_RELATIONS & set(given.get("rel", "").split()):
            self.loads.append(given["href"])
        elif given.get(LOADS.get(tag, "")):
            self.loads.append(given[LOADS[tag]])


def check(site: Path) -> list[str]:
    """Everything that is wrong, as lines for people."""
    pages = {file: Page(file) for file in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site}: there are no pages"]
    problems = []
    for page in pages.values():
        where = page.file.relative_to(site)
        problems += [f"{where}: loads {target} from another host" for target in page.loads if urlsplit(target).netloc]
        for target in dict.fromkeys([*page.links, *page.loads]):
            problem = _problem(site, pages, page, target)
            if problem is not None:
                problems.append(f"{where}: {target}: {problem}")
    return problems


def _problem(site: Path, pages: dict[Path, Page], page: Page, target: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    path = unquote(parts.path)
    if not path:
        file = page.file
    else:
        # The page for wrong addresses is shown at any address, so its links are from the top.
        top = site if path.startswith("/") or page.file.name == "404.html" else page.file.parent
        file = (top / path.lstrip("/")).resolve()
        if file.is_dir():
            file /= "index.html"
    if not file.is_relative_to(site):
        return "leads out of the site"
    if not file.is_file():
        return "is not there"
    # An empty fragment, and "__"-names that scripts of the theme use, need no place.
    anchor = unquote(parts.fragment)
    if anchor and not anchor.startswith("__") and file in pages and anchor not in pages[file].anchors:
        return f"there is no place {anchor!r} on that page"
    return None


def main(arguments: list[str]) -> int:
    [folder] = arguments
    problems = check(Path(folder).resolve())
    print("\n".join(problems) or "All links of the site lead somewhere.")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
