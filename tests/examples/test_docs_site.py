"""The documentation is built as a site: without a warning, and without a file of another host."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.docs import site
from tools.docs.browser import Browser, find_chromium

ROOT = Path(__file__).resolve().parents[2]
SEARCHED = ("cron", "FLUSS_SASL_PASSWORD", "TableNotFoundError", "prefix_lookup", "on_trimmed")
LOOKED_AT = ("index", "options", "types", "errors", "comparison", "api/session", "guide/terminal")
PHONE = 390
# Anchors that its scripts add.
OF_THE_THEME = ("__tabbed", "__skip")


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
def test_the_site_is_whole_and_works_offline(tmp_path):
    """One test, because the site is built once for all of it; a warning ends the build."""
    try:
        code = site.build(tmp_path)
    except site.ToolsMissingError as error:
        pytest.skip(f"./dev docs has no tools: {error}")
    assert code == 0
    assert not list(site.foreign_addresses(tmp_path))
    pages = {path: Links(path.read_text()) for path in tmp_path.rglob("*.html")}
    assert len(pages) > 60
    assert not list(dead_links(pages))
    index = (tmp_path / "search" / "search_index.js").read_text()
    for words in SEARCHED:
        assert words in index
    if (program := find_chromium()) is not None:  # ./dev docs screenshots installs it
        look_at(tmp_path, program)


def look_at(folder, program):
    """Open pages as files: no host is asked, the search answers, a phone is wide enough."""
    with Browser(program) as browser:
        browser.show(f"file://{folder}/index.html?q=cron", width=1280, height=800)
        browser.wait_for("document.querySelectorAll('.md-search-result__item').length > 1")
        for name in LOOKED_AT:
            browser.show(f"file://{folder}/{name}.html", width=PHONE, height=800)
            assert browser.value("document.documentElement.scrollWidth") <= PHONE, name
        assert {urlsplit(each).scheme for each in browser.requested} <= {"file", "data"}
        assert browser.complaints == []


@pytest.mark.slow  # MkDocs is started
def test_a_warning_ends_the_build(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n\n[a link](nowhere.md)\n")
    configuration = tmp_path / "mkdocs.yml"
    configuration.write_text("site_name: x\ndocs_dir: docs\n")
    try:
        code = site.build(tmp_path / "site", configuration)
    except site.ToolsMissingError as error:
        pytest.skip(f"./dev docs has no tools: {error}")
    assert code != 0
    assert "nowhere.md" in capsys.readouterr().err


def dead_links(pages):
    """Yield the links of pages that lead to no file, or to no anchor of a page."""
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in {"http", "https", "data", "mailto"} or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if not target.exists() or unquote(parts.fragment) not in {"", *anchors, *OF_THE_THEME}:
                yield path.name, link


def test_what_loads_a_file_of_another_host_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<script src="https://a.example/x.js"></script><a href="https://b.example/">text</a>'
        '<link rel="stylesheet" href="//c.example/x.css"><img src="pictures/x.png">'
    )
    (tmp_path / "x.css").write_text("@font-face { src: url(https://d.example/f.woff) }")
    found = [address for _, address in site.foreign_addresses(tmp_path)]
    assert found == ["https://a.example/x.js", "//c.example/x.css", "https://d.example/f.woff"]


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
