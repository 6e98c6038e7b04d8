"""Writes docs/errors.md: every error class, every hint and every code, from `fluss.errors`.

`./dev generate` writes it, and a test compares it with the code.
"""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Iterator
from typing import Any

from fluss import errors
from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, error_from_code
from fluss.hints import Door, FrameKind, Hint, HintKey, render
from fluss.model.options.scan_options import SCAN_OPTIONS

_HEAD = """\
# Errors

This page lists the classes of errors, the hints and the codes of servers; `./dev generate` writes it.
[Troubleshooting](troubleshooting.md) lists symptoms and their remedies.

Every error of this package is a `fluss.FlussError`. It says what happened, why, and what to do next:

| attribute | meaning |
|---|---|
| `message` | what happened, and where |
| `hint` | what to do next, with the names of the interface in use; `None` if there is no hint |
| `error_code` | the code of the server; -2 if the client refused the call itself |
| `is_retriable` | whether the same call may succeed later; the client has retried such calls already |
| `facts` | the facts in the message, such as `table` or `bucket`; each is an attribute, too |
| `server_trace` | the stack trace that a server sent, if any |

```python
import fluss

session = fluss.connect("fluss://127.0.0.1:9123")
try:
    session.table("fluss.no_such_table")
except fluss.errors.TableNotFoundError as error:
    print(error.error_code, error.is_retriable)
session.close()
```

```text
7 False
```

## Classes

*Retried* means that the client repeats the request until `operation-timeout`, so such an error is
raised after that time. The code is that of a server's response; errors of the client have none.
"""

_HINTS = """
## Hints

A hint that names a method, an option or a type differs by interface. It has a key, and is listed here. `⟨…⟩` stands
for a fact of the error, such as the name of the table. Hints that are the same in every interface have no key, and are
not listed.
"""

_CODES = """
## Codes of servers

The class of an error depends on the code in the response, never on its text. *Since* is the first release of Fluss that
sends the code.

| code | name | class | retried | since | meaning |
|---|---|---|---|---|---|
"""
_SECTION = re.compile(r"^# --- (.+?) -+$")
_CLASS = re.compile(r"^class (\w+)\(")
_FIRST_SECTION = "every error"


def errors_page() -> str:
    """Return the whole page."""
    return _HEAD + _classes() + _HINTS + _hints() + _CODES + _codes()


def error_classes() -> dict[str, list[type[FlussError]]]:
    """Return the classes by the section of `fluss.errors` in which they stand."""
    found: dict[str, list[type[FlussError]]] = {}
    section = _FIRST_SECTION
    for line in inspect.getsource(errors).splitlines():
        if heading := _SECTION.match(line):
            section = heading[1]
        elif named := _CLASS.match(line):
            found.setdefault(section, []).append(getattr(errors, named[1]))
    return found


def _classes() -> str:
    lines: list[str] = []
    for section, classes in error_classes().items():
        lines += ["", f"### {section[0].upper()}{section[1:]}", ""]
        lines += ["| class | code | retried | meaning |", "|---|---|---|---|"]
        lines += [_class_row(each) for each in classes]
    return "\n".join(lines) + "\n"


def _class_row(error: type[FlussError]) -> str:
    code = "" if error.default_code == int(ErrorCode.CLIENT_ERROR) else str(error.default_code)
    parent = error.__mro__[1].__name__
    kind = "" if parent in {"FlussError", "Exception"} else f" A `{parent}`."
    meaning = _cell((inspect.getdoc(error) or "").split("\n\n")[0])
    return f"| `{error.__name__}` | {code} | {_yes(error.retriable)} | {meaning}{kind} |"


def _hints() -> str:
    lines: list[str] = []
    for key in HintKey:
        lines += ["", f"### `{key.name.lower()}`", ""]
        lines += [f"- *{reader}*: {text}" for reader, text in _texts_of(key)]
    return "\n".join(lines) + "\n"


def _texts_of(key: HintKey) -> Iterator[tuple[str, str]]:
    """Yield for which doors, or which data, there is which text; equal texts once."""
    texts: dict[str, list[str]] = {}
    for place, template in key.texts.items():
        hint = Hint(key, **_facts_of(template))
        if key.is_call:
            text, name = render(hint, Door(place)), _DOORS[place]
        else:
            text, name = render(hint, None, FrameKind(place)), _FRAMES[place]
        texts.setdefault(text, []).append(name)
    for text, readers in texts.items():
        yield ", ".join(readers), _cell(" ".join(text.split()))


_DOORS = {
    Door.CLIENT: "client",
    Door.AIO: "`fluss.aio`",
    Door.SESSION: "session",
    Door.PANDAS: "pandas",
    Door.POLARS: "Polars",
    Door.DUCKDB: "DuckDB",
    Door.SPARK: "Spark",
    Door.CLI: "command line",
}
_FRAMES = {
    FrameKind.ARROW: "Arrow",
    FrameKind.ROWS: "rows",
    FrameKind.PANDAS: "pandas",
    FrameKind.POLARS: "Polars",
    FrameKind.DUCKDB: "DuckDB",
    FrameKind.SPARK: "Spark",
    FrameKind.FILE: "a file",
}


class _Fact:
    """Stands for a fact in the text of a hint."""

    def __init__(self, name: str) -> None:
        self._text = f"⟨{name}⟩"

    def __format__(self, _: str) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


def _facts_of(template: str) -> dict[str, Any]:
    names = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    return {name: _Fact(name) for name in names - set(SCAN_OPTIONS)}


def _codes() -> str:
    rows = []
    for code in ErrorCode:
        kind = "" if code is ErrorCode.NONE else f"`{type(error_from_code(code)).__name__}`"
        if code is ErrorCode.CLIENT_ERROR:
            kind = "`FlussError`"
        rows.append(
            f"| {int(code)} | `{code.name}` | {kind} | {_yes(code.is_retriable)} | {code.since} | "
            f"{_cell(code.sentence)} |"
        )
    return "\n".join(rows) + "\n"


def _yes(flag: bool) -> str:  # noqa: FBT001 - a cell of a table
    return "yes" if flag else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
