"""The folders of the user that commands keep things in: the state of imports, the history of `sql`.

They follow the XDG convention: `$XDG_STATE_HOME/fluss`, which is `~/.local/state/fluss` by default.
"""

from __future__ import annotations

import os
from pathlib import Path


def state_folder(*names: str) -> Path:
    """Return a folder for what a command remembers between runs; created for the user alone.

    Args:
        *names: Its name beneath `$XDG_STATE_HOME/fluss`.

    Raises:
        OSError: It cannot be created.
    """
    base = os.environ.get("XDG_STATE_HOME")
    home = Path(base) if base else Path(os.environ.get("HOME") or Path.home()) / ".local" / "state"
    folder = home.joinpath("fluss", *names)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
