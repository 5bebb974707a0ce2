"""The example plugins as a stranger meets them: installed, tested, type-checked and held to the contract, each as it is."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from harness_core.testing import FreshVenv

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in ROOT.glob("docs/examples/*/pyproject.toml"))
SHORT = [folder.name for folder in EXAMPLES]

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11),
    reason="examples are installed for real, which is slow and the same on every Python",
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> FreshVenv:
    """All of them side by side, with types and tests copied, so that nothing is written into the checkout."""
    made = FreshVenv(tmp_path_factory.mktemp("environment"), offline=True)
    made.install(*EXAMPLES)
    return made


def test_there_are_five_and_the_overview_names_them_all() -> None:
    overview = (ROOT / "docs/examples/README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(.+)\]\(\1/README.md\)", overview, re.MULTILINE) == [
        "house-style",
        "office-hours",
        "unit-converter",
        "redact",
        "guard",
    ]
    assert sorted(SHORT) == SHORT
    assert len(SHORT) == 5


def test_their_tests_pass(environment: FreshVenv) -> None:
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", str(EXAMPLES[0] / "pyproject.toml")]
    tests = [str(folder / "tests") for folder in EXAMPLES]
    done = environment.run("-m", "pytest", *options, *tests, env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_their_types_are_checked_strictly(environment: FreshVenv) -> None:
    first, *_ = EXAMPLES
    sources = [str(path) for folder in EXAMPLES for path in (folder / "src", *folder.glob("tests/test_*.py"))]
    done = environment.run(
        *("-m", "mypy", "--cache-dir", str(environment.folder / "mypy"), *sources, "tests/conftest.py"), cwd=first
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", EXAMPLES, ids=SHORT)
def test_it_keeps_to_the_contract_with_the_composition_of_its_readme(
    environment: FreshVenv, folder: Path, tmp_path: Path
) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "harness.toml").write_text(block, encoding="utf-8")
    done = environment.run("harness", "plugin", "check", f"harness-{folder.name}", "--strict", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", EXAMPLES, ids=SHORT)
def test_its_readme_names_every_setting(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == f"harness-{folder.name}"
    config = next(folder.glob("src/*/config.py"), None)
    keys = re.findall(r"^    (\w+): ", config.read_text(encoding="utf-8"), re.MULTILINE) if config else []
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{key}` |" in readme for key in keys)


@pytest.mark.parametrize("folder", EXAMPLES, ids=SHORT)
def test_its_page_links_all_its_files(folder: Path) -> None:
    readme = (folder / "README.md").read_text(encoding="utf-8")
    files = {path.relative_to(folder).as_posix() for path in (*folder.rglob("*.py"), folder / "pyproject.toml")}
    assert files == set(re.findall(r"^- \[(.+)\]\(\1\)$", readme, re.MULTILINE))
