"""`embedded:./folder`: servers that other packages start, found by their entry points.

This package starts no server itself: installed packages do by the entry point group
`fluss.launchers`. Where there is none, the error names the pip command.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install

GROUP = "fluss.launchers"
NAME = "embedded"


def launch(folder: str) -> tuple[str, Callable[[], None]]:
    """Start a server that keeps its data in a folder.

    Args:
        folder: The folder, and options of the server after a question mark; without a folder, it
            is a temporary one, which is deleted with the server.

    Returns:
        Its bootstrap servers, and a function that stops it.

    Raises:
        MissingExtraError: No installed package can start one.
    """
    for launcher in entry_points(group=GROUP, name=NAME):
        start: Callable[[str], tuple[str, Callable[[], None]]] = launcher.load()
        return start(folder)
    raise MissingExtraError(
        f"No installed package can start an embedded server for {folder!r}.",
        hint=how_to_install("fluss-server"),
    )
