"""`embedded:./folder`: servers that other packages start, found by their entry points.

This package starts none itself: what is installed under the group `fluss.launchers` does, and where
nothing is, the error is the pip command.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from fluss.errors import MissingExtraError

GROUP = "fluss.launchers"
NAME = "embedded"


def launch(folder: str) -> tuple[str, Callable[[], None]]:
    """Start a server that keeps its data in a folder.

    Returns:
        Its bootstrap servers, and what stops it.

    Raises:
        MissingExtraError: No installed package can.
    """
    for each in entry_points(group=GROUP, name=NAME):
        start: Callable[[str], tuple[str, Callable[[], None]]] = each.load()
        return start(folder)
    raise MissingExtraError(
        f"No installed package can start an embedded server for {folder!r}.",
        hint="pip install fluss-server",
    )
