"""Hooks of MkDocs: files outside docs become pages, and links to them lead there.

Pages link to programs, notebooks and pages elsewhere in the repository, as they are read in a
clone. In the site each of them is a page below `repository/`, so that no link leaves the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

from tools.docs.notebook_text import notebook_text

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOLDER = "repository"
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LISTED = (".md", ".py", ".ipynb")


def on_config(config: Any) -> Any:
    """Replace `folder/*` in the navigation by the pages of the folder that are not named."""
    named = set(_named(config.nav))
    config.nav = _expanded(config.nav, named)
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add a page for each file outside docs to which a page links."""
    for path in _linked_from(DOCS.rglob("*.md")):
        page = File.generated(config, _uri(path), content=_text(path))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite links that lead out of docs, or that begin in a file outside."""
    source = _SOURCES.get(page.file.src_uri, DOCS / page.file.src_uri)

    def rewritten(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        if "://" in link[2] or not path or link[2].startswith("mailto:"):
            return link[0]
        target = (source.parent / path).resolve()
        uri = posixpath.relpath(_uri(target), posixpath.dirname(page.file.src_uri))
        return f"{link[1]}{uri}{mark}{anchor}{link[3]}"

    return _outside_code(markdown, lambda text: _LINK.sub(rewritten, text))


# The files behind the pages that this module adds.
_SOURCES: dict[str, Path] = {}


def _linked_from(pages: Iterator[Path]) -> list[Path]:
    """Find all files outside docs to which these pages lead, directly or by one another."""
    found: dict[Path, None] = {}
    waiting = list(pages)
    while waiting:
        page = waiting.pop()
        for target in _targets(page):
            if target not in found and not target.is_relative_to(DOCS):
                found[target] = None
                _SOURCES[_uri(target)] = target / "README.md" if target.is_dir() else target
                waiting.append(target)
    return list(found)


def _targets(page: Path) -> Iterator[Path]:
    """Yield the files that a page links to; a folder without a page links to its files."""
    if page.is_dir() and not (page / "README.md").exists():
        yield from (each for each in sorted(page.iterdir()) if each.suffix in _LISTED)
        return
    if page.is_dir():
        page /= "README.md"
    if page.suffix not in {".md", ".ipynb"}:
        return
    for _, link, _ in _LINK.findall(_FENCED.sub("", _text(page))):
        path = link.partition("#")[0]
        if path and "://" not in link:
            target = (page.parent / path).resolve()
            if not target.exists() and not target.is_relative_to(DOCS):  # MkDocs looks there
                raise FileNotFoundError(f"{page.relative_to(ROOT)} links to {link}")
            yield target.parent if target.name == "README.md" and target.parent != ROOT else target


def _uri(target: Path) -> str:
    """Return the address of a file's page in the site."""
    if target.is_relative_to(DOCS):
        inside = target.relative_to(DOCS).as_posix()
        return posixpath.join(inside, "README.md") if target.is_dir() else inside
    path = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        return f"{FOLDER}/{path}/README.md"
    return f"{FOLDER}/{path}" if target.suffix == ".md" else f"{FOLDER}/{path}.md"


def _text(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        readme = path / "README.md"
        if readme.exists():
            return readme.read_text()
        files = [each.name for each in sorted(path.iterdir()) if each.suffix in _LISTED]
        return f"# {name}\n\n" + "".join(f"- [{each}]({each})\n" for each in files)
    if path.suffix == ".ipynb":
        return notebook_text(path)
    if path.suffix == ".md":
        return path.read_text()
    return f"# {name}\n\n```{path.suffix[1:].replace('py', 'python')}\n{path.read_text()}```\n"


def _named(nav: Any) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, list):
                yield from _named(value)
            elif not value.endswith("/*"):
                yield value


def _expanded(nav: Any, named: set[str]) -> list[Any]:
    expanded: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            found = sorted(
                each.relative_to(DOCS).as_posix() for each in DOCS.glob(f"{entry[:-2]}/*.md")
            )
            expanded += [each for each in found if each not in named]
        elif isinstance(entry, dict):
            expanded.append(
                {
                    title: _expanded(value, named) if isinstance(value, list) else value
                    for title, value in entry.items()
                }
            )
        else:
            expanded.append(entry)
    return expanded


def _outside_code(markdown: str, change: Any) -> str:
    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else change(part) for part in parts)
