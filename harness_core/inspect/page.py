"""The page: one self-contained HTML file for a trace, a log's cache report, or both.

The page's own code stands in page_files/ and is put in as it is; all data goes in as JSON, and the code makes text of it.
The page's policy lets nothing else run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

__all__ = ["render_page"]

_SCRIPTS = ("base.js", "trace.js", "cache.js", "main.js")
_MARK = re.compile(r"@(POLICY|TITLE|STYLE|DATA|SCRIPT)@")


def render_page(
    title: str,
    *,
    facts: Mapping[str, str] | None = None,
    trace: Mapping[str, Any] | None = None,
    cache: Mapping[str, Any] | None = None,
) -> str:
    """The page as text, to be written as UTF-8.

    Args:
        facts: a few words on what is shown, in the order in which they are to stand.
        trace: what `trace_document` made.
        cache: what `cache_document` made.
    """
    folder = files("harness_core.inspect") / "page_files"
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    data = {"facts": list((facts or {}).items()), "trace": trace, "cache": cache}
    parts = {
        "POLICY": html.escape(_policy(style, script)),
        "TITLE": html.escape(title),
        "STYLE": style,
        "DATA": _as_script_data(data),
        "SCRIPT": script,
    }
    template = (folder / "page.html").read_text(encoding="utf-8")
    # One pass: what is put in is never looked at again, whatever it says.
    return _MARK.sub(lambda found: parts[found[1]], template)


def _policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_script_data(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it stands in. ASCII, so that lone surrogates do no harm either."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")
