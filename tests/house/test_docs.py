"""The pages say what is so: options as declared, errors that exist, links that lead somewhere."""

import builtins
import re
from pathlib import Path

import pytest

import fluss.errors
from fluss.model.options.config_options import ClientOptions
from fluss.model.options.scan_options import SCAN_OPTIONS
from fluss.model.tables.table_options import TableOptions
from tests.house.sources import tracked_texts
from tools.option_pages import options_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("packages/*/README.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
INSTALL = re.compile(r"pip install\b[^`\n]*\bfluss-[^`\n]*")
ERROR = re.compile(r"`(?:fluss\.)?(\w+Error)`")


def test_the_page_of_options_is_what_is_declared():
    assert (DOCS / "options.md").read_text() == options_page(), "run `./dev generate`"


def test_every_option_is_on_the_page():
    page = (DOCS / "options.md").read_text()
    for key in [*SCAN_OPTIONS, *ClientOptions.OPTIONS, *TableOptions.OPTIONS]:
        assert f"| `{key}` |" in page, key


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in LINK.findall(text):
        if "://" not in target:
            path = target.partition("#")[0]
            assert not path or (page.parent / path).exists(), target


def test_every_page_is_found_from_the_index():
    index = (DOCS / "README.md").read_text()
    linked = {(DOCS / each).resolve() for each in LINK.findall(index)}
    for page in [*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md")]:
        assert page in linked or page.name == "README.md", page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_errors_that_are_named_exist(page):
    for name in ERROR.findall(page.read_text()):
        assert hasattr(fluss.errors, name) or hasattr(builtins, name), name


def test_what_is_installed_can_be_installed_that_way():
    """Our packages are on no index: `./dev build` makes what `--find-links dist` finds."""
    for path, text in tracked_texts():
        is_history = path.name == "CHANGELOG.md" or "tests" in path.parts
        if path.suffix in {".md", ".ipynb", ".py"} and not is_history:
            for command in INSTALL.findall(text):
                assert "--find-links dist" in command, f"{path.relative_to(ROOT)}: {command}"
