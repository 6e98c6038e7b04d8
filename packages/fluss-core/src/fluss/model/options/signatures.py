"""Shows the options of scans in the signatures and docstrings of functions that take them.

`help(pl.scan_fluss)`, notebooks and completion look at a function itself, where `**options` says
nothing. The decorated function is not changed otherwise.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from fluss.model.options.scan_options import SCAN_OPTIONS

F = TypeVar("F", bound=Callable[..., Any])

_WIDTH: Final = 100
# The paragraph of `**options` in the section `Args:`.
_PARAGRAPH: Final = re.compile(
    r"^(?P<indent> *)\*\*options: .*\n(?:(?P=indent) +.*\n)*", re.MULTILINE
)


def shows_options(options: Iterable[str] = SCAN_OPTIONS) -> Callable[[F], F]:
    """Return a decorator for a function with `**options`; it must be the innermost.

    Args:
        options: The names of the options that the function takes.
    """
    names = list(options)

    def show(function: F) -> F:
        described: Any = function
        described.__signature__ = _signature(function, names)
        described.__doc__ = _PARAGRAPH.sub(
            lambda found: _listed(names, found["indent"]), function.__doc__ or ""
        )
        return function

    return show


def _signature(function: Callable[..., Any], names: Iterable[str]) -> inspect.Signature:
    signature = inspect.signature(function)
    declared = [
        each
        for each in signature.parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    known = {each.name for each in declared}
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=f"{SCAN_OPTIONS[name].takes} | None",
        )
        for name in names
        if name not in known
    ]
    return signature.replace(parameters=[*declared, *added])


def _listed(names: Iterable[str], indent: str) -> str:
    lines = [
        line
        for name in names
        for line in textwrap.wrap(
            f"{name}: {SCAN_OPTIONS[name].doc}",
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
        )
    ]
    return "".join(f"{line}\n" for line in lines)
