"""The command `fluss`: reading and writing tables from a terminal and from scripts.

Every command works through `fluss.connect`; other packages add commands (`server`, `sql`) by the
entry points of the group `fluss.commands`. Only rows go to the standard output, so every command
can be part of a pipe. Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 Ctrl-C, 141 the
reader of the standard output has closed it.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, TextIO

REFUSED = 1
INTERRUPTED = 130
PIPE_CLOSED = 141  # the exit code that a shell reports for a program ended by SIGPIPE


def main() -> int:
    """Run the command line; the console script calls this."""
    out = sys.stdout
    try:
        code = _run()
        if out is not None:
            out.flush()
    except SystemExit as ended:
        # typer and rich meet a closed pipe before we do, and exit with 1.
        if not _is_closed_pipe(ended.__context__):
            raise
        return _leave(out, PIPE_CLOSED)
    except OSError as error:
        if _is_closed_pipe(error):
            return _leave(out, PIPE_CLOSED)
        where = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"fluss: {where}{error.strerror or error}\n")
        return _leave(out, REFUSED)
    return code


def _is_closed_pipe(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _leave(out: TextIO | None, code: int) -> int:
    """End with a closed standard output, which Python flushes once more at exit."""
    if out is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return code


def _run() -> int:
    try:
        import typer

        from fluss.cli.application import application
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.stderr.write("fluss: the command line needs: pip install 'fluss-core[cli]'\n")
        return REFUSED
    from fluss.errors import FlussError
    from fluss.hints import Door

    # Typer does not export the base class of its usage errors.
    usage_error: Any = typer.BadParameter.__mro__[2]
    try:
        code = application()(standalone_mode=False)
    except FlussError as error:
        sys.stderr.write(f"fluss: {error.with_context(door=Door.CLI)}\n")
        return REFUSED
    except usage_error as error:
        error.show()
        return int(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0
