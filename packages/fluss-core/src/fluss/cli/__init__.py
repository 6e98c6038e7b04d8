"""The command `fluss`: what people and scripts do with tables from a terminal.

Everything goes through `fluss.connect`; other packages add commands (`server`, `sql`) by the entry
points of the group `fluss.commands`. Rows go to the standard output and nothing else does, so every
command can stand in a pipe. Exit codes: 0 done, 1 refused or failed, 2 wrong words, 130 Ctrl-C, 141
nobody reads on.
"""

from __future__ import annotations

import sys
from typing import Any

REFUSED = 1
INTERRUPTED = 130


def main() -> int:
    """Run the command line; what the console script calls."""
    try:
        import typer

        from fluss.cli.application import application
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.stderr.write("fluss: the command line needs: pip install 'fluss-core[cli]'\n")
        return REFUSED
    from fluss.errors import FlussError

    # Typer exports only the leaves of its errors; all that is wrong with words has this base.
    wrong_words: Any = typer.BadParameter.__mro__[2]
    try:
        code = application()(standalone_mode=False)
        sys.stdout.flush()
    except FlussError as error:
        sys.stderr.write(f"fluss: {error}\n")
        return REFUSED
    except wrong_words as error:
        error.show()
        return int(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0
