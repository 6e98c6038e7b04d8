"""Reads the steps of a page: its programs, its terminal sessions, and the files that it shows.

=========================  =======================================================================
block                      step
=========================  =======================================================================
```python                  a program; a block ```text directly after it is what it prints
```python title="job.py"   a file of that name, for the steps after it; so for any language
```console                 commands after `$ `, and what they print
others                     none: they are not run
=========================  =======================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r'title="([^"]+)"')
SECONDS = re.compile(r"\b\d+\.\d+s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One block of a page.

    Attributes:
        kind: `python`, `console` or `file`.
        text: The program, the terminal session, or the contents of the file.
        printed: What the step prints.
        name: The file's name.
    """

    kind: str
    text: str
    printed: str = ""
    name: str = ""


def steps_of(page: str, *, with_consoles: bool = True) -> list[Step]:
    """Return the steps of a page, in order."""
    blocks = list(FENCE.finditer(page))
    steps: list[Step] = []
    for block, following in zip_longest(blocks, blocks[1:]):
        info, body = block["info"], block["body"]
        if title := TITLE.search(info):
            steps.append(Step(kind="file", text=body, name=title[1]))
        elif info == "python":
            steps.append(Step(kind="python", text=body, printed=_output(page, block, following)))
        elif info == "console" and with_consoles:
            steps.append(Step(kind="console", text=body, printed=body))
    return steps


def without_durations(text: str) -> str:
    """Replace durations, which differ from run to run."""
    return SECONDS.sub("0.00s", text)


def _output(page: str, block: re.Match[str], following: re.Match[str] | None) -> str:
    if following is None or following["info"] != "text":
        return ""
    between = page[block.end() : following.start()]
    return "" if between.strip() else following["body"]
