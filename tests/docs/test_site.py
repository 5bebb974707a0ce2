"""The check of the built site finds links that lead nowhere. (`tox -e docs` builds the site and runs it.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_site.py"


def check(site: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(SCRIPT), str(site)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages that link to each other."""
    (tmp_path / "how-to").mkdir()
    (tmp_path / "style.css").write_text("", encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><a href="how-to/#second">there</a><a href="https://example.com/">out</a>',
        encoding="utf-8",
    )
    (tmp_path / "how-to" / "index.html").write_text(
        '<h2 id="second"></h2><a href="../#">home</a><a href="#second">here</a>', encoding="utf-8"
    )
    return tmp_path


def test_a_site_whose_links_lead_somewhere_passes(site: Path) -> None:
    assert check(site) == (0, "All links of the site lead somewhere.\n")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ('<a href="how-to/#third">', "no place 'third'"),
        ('<a href="how/">', "is not there"),
        ('<a href="../other.html">', "leads out of the site"),
        ('<img src="picture.png">', "is not there"),
        ('<script src="https://example.com/x.js"></script>', "from another host"),
    ],
)
def test_what_leads_nowhere_or_elsewhere_is_named(site: Path, wrong: str, problem: str) -> None:
    (site / "index.html").write_text(wrong, encoding="utf-8")
    code, said = check(site)
    assert code == 1
    assert "index.html: " in said
    assert problem in said


def test_an_empty_site_is_none(tmp_path: Path) -> None:
    assert check(tmp_path)[0] == 1
