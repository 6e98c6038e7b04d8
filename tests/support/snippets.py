"""Extracts the code snippets of a document, and runs them against the test's cluster.

A page is Markdown in which a heading describes a snippet and the tables it needs (`## read
everything on events with rows`). The calls run as they are written. Only the address and the
databases are replaced by those of the test, and `while True` becomes a single round.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PIECE = re.compile(
    r"^## (?P<title>.+?) (?:on|as) (?P<scene>.+?)\n\n```python\n(?P<code>.+?)^```",
    re.MULTILINE | re.DOTALL,
)
ADDRESS = "127.0.0.1:9123"
ROUNDS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One snippet, and the tables it needs."""

    page: str
    title: str
    scene: str
    code: str

    @property
    def name(self) -> str:
        """Its name in test reports."""
        return f"{self.page}: {self.title}"

    def placed(self, *, bootstrap: str, database: str, other_database: str) -> str:
        """Return the code with the addresses of this run."""
        return (
            self.code.replace(ADDRESS, bootstrap)
            .replace('TablePath("fluss"', f'TablePath("{database}"')
            .replace('"my_database"', f'"{other_database}"')
        )


def snippets_of(page: Path) -> list[Snippet]:
    """Return all snippets of a page; a snippet without a known table is an error of the page."""
    text = page.read_text()
    found = [
        Snippet(page=page.stem, title=each["title"], scene=each["scene"], code=each["code"])
        for each in PIECE.finditer(text)
    ]
    if len(found) != text.count("```python"):
        raise ValueError(f"{page.name} has code under a heading that does not say on what it runs")
    return found


async def run_code(code: str, names: dict[str, Any]) -> None:
    """Run code that may use top-level await; its definitions are stored in `names`."""
    tree = ast.fix_missing_locations(_OneRound().visit(ast.parse(code)))
    compiled = compile(tree, "<snippet>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(compiled, names)  # noqa: S307 - our own pages
    if waiting is not None:
        await waiting


class _OneRound(ast.NodeTransformer):
    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.test, ast.Constant) and node.test.value is True):
            return node
        rounds = ast.parse(f"for _ in range({ROUNDS}): pass").body[0]
        assert isinstance(rounds, ast.For)
        rounds.body = node.body
        return rounds
