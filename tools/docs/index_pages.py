"""Writes the index of the decisions and that of the proofs from their pages.

`./dev generate` writes them, and a test compares them with the folders.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_NUMBER = re.compile(r"^\d+[.:]\s*")

_DECISIONS = """\
# Decisions

Each page describes a decision that binds other code: its context, the decision, its consequences, and how we would
notice that it was wrong. Decisions are history: a decision that changes gets a new page.

"""
_PROOFS = """\
# Proofs

Proofs are long test runs that are too slow for every change. `./dev prove NAME` runs one and writes its page, with the
date, the commit and the output. [How it is tested](../testing.md) lists what they compare.

"""


def index_pages() -> dict[str, str]:
    """Return both pages, by their path in docs."""
    return {
        "decisions/README.md": _DECISIONS + "".join(map(_decision, _pages("decisions"))),
        "proofs/README.md": _PROOFS + "\n".join(map(_proof, _pages("proofs"))),
    }


def _pages(folder: str) -> list[Path]:
    return sorted(each for each in (DOCS / folder).glob("*.md") if each.name != "README.md")


def _decision(page: Path) -> str:
    title = _NUMBER.sub("", page.read_text().partition("\n")[0].lstrip("# "))
    number = int(page.name.partition("-")[0])
    return f"{number}. [{title[0].upper()}{title[1:]}]({page.name})\n"


def _proof(page: Path) -> str:
    claim = page.read_text().split("\n\n")[1]
    return f"## {page.stem}\n\n{claim} [The run]({page.name}).\n"
