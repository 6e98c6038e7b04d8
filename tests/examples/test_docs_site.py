"""The documentation is built as a site: without a warning, and without a file of another host."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.docs import site

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    try:
        code = site.build(folder)
    except site.ToolsMissingError as error:
        pytest.skip(f"./dev docs has no tools: {error}")
    assert code == 0
    return folder


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.anchors |= {named.get("id"), named.get("name")} - {None}
        if tag == "a" and named.get("href"):
            self.links.append(named["href"])
        if tag in {"img", "script"} and named.get("src"):
            self.links.append(named["src"])


@pytest.mark.slow  # about a hundred pages are built
def test_every_link_of_the_site_leads_to_a_page_and_an_anchor(built):
    pages = {path: Links(path.read_text()) for path in built.rglob("*.html")}
    assert len(pages) > 60
    missing = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in {"http", "https", "data", "mailto"} or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                missing.append((path.relative_to(built).as_posix(), link))
            elif parts.fragment and target in pages:
                anchors = pages[target].anchors | {"__tabbed", "__skip"}
                if unquote(parts.fragment) not in anchors:
                    missing.append((path.relative_to(built).as_posix(), link))
    assert not missing


@pytest.mark.slow  # as above
def test_the_site_loads_nothing_from_other_hosts(built):
    assert not list(site.foreign_addresses(built))


def test_what_loads_a_file_of_another_host_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<script src="https://a.example/x.js"></script><a href="https://b.example/">text</a>'
        '<link rel="stylesheet" href="//c.example/x.css"><img src="pictures/x.png">'
    )
    (tmp_path / "x.css").write_text("@font-face { src: url(https://d.example/f.woff) }")
    found = [address for _, address in site.foreign_addresses(tmp_path)]
    assert found == ["https://a.example/x.js", "//c.example/x.css", "https://d.example/f.woff"]


@pytest.mark.slow  # as above
def test_the_search_finds_what_people_look_for(built):
    index = (built / "search" / "search_index.js").read_text()
    for words in (
        "cron",
        "FLUSS_SASL_PASSWORD",
        "TableNotFoundError",
        "prefix_lookup",
        "on_trimmed",
    ):
        assert re.search(re.escape(words), index), words


def test_an_unknown_step_is_refused_with_the_steps():
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs.site", "bulid"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "build | serve" in done.stderr
