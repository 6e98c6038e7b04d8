"""The command `fluss`: reading, writing and defining tables from a terminal and from scripts.

Every command works through sessions; other packages add commands (`server`, `sql`) by the entry
points of the group `fluss.commands`. Only rows go to the standard output, so every command can be
part of a pipe. Every error is one message on the standard error that begins with `fluss:`. Exit
codes: 0 done, 1 refused or failed, 2 wrong usage, 130 Ctrl-C, 141 the reader of the standard output
has closed it.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, TextIO

REFUSED = 1
MISUSED = 2
INTERRUPTED = 130
PIPE_CLOSED = 141  # the exit code that a shell reports for a program ended by SIGPIPE
_NO_SPACE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
COMPLETING = "_FLUSS_COMPLETE"  # set by the scripts of `fluss completion`


def main() -> int:
    """Run the command line; the console script calls this."""
    _open_missing_streams()
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
        if error.filename is None and error.errno in _NO_SPACE:
            where = "the standard output: "
        _complain(f"{where}{error.strerror or error}")
        return _leave(out, REFUSED)
    except KeyboardInterrupt:
        return INTERRUPTED  # while modules were imported; `_run` handles the others
    return code


def _open_missing_streams() -> None:
    """Open the standard streams that the caller has closed (`fluss ls >&-`).

    Otherwise sockets would get their numbers. The output is open for reading, so that writing to it
    fails as with a closed one.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 - open until the process ends
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - open until the process ends


def _is_closed_pipe(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _leave(out: TextIO | None, code: int) -> int:
    """End with a closed standard output, which Python flushes once more at exit."""
    if out is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return code


def _complain(text: object) -> None:
    sys.stderr.write(f"fluss: {text}\n")


def _run() -> int:
    try:
        import typer
    except ModuleNotFoundError:
        from fluss.install_hints import how_to_install

        _complain(f"the command line needs: {how_to_install('fluss-core[cli]')}")
        return REFUSED
    from fluss.cli.application import application
    from fluss.cli.command_group import UnknownCommandError
    from fluss.cli.global_options import GlobalOptions
    from fluss.cli.log_output import logging_as
    from fluss.errors import FlussError
    from fluss.hints import Door

    if COMPLETING in os.environ:
        from fluss.cli.completion import complete

        # A connection that is still being opened must not delay the shell.
        os._exit(complete(application(), os.environ))
    # Typer does not export the base class of its usage errors.
    usage_error: Any = typer.BadParameter.__mro__[2]
    options = GlobalOptions()
    try:
        with logging_as(options):
            code = application()(sys.argv[1:], "fluss", standalone_mode=False, obj=options)
    except UnknownCommandError as error:
        _complain(f"{error}\n  hint: {error.hint}")
        return MISUSED
    except usage_error as error:
        return _misused(error)
    except FlussError as error:
        _show_traceback(options)
        _complain(error.with_context(door=Door.CLI))
        return REFUSED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except OSError:
        _show_traceback(options)
        raise
    except Exception as error:  # noqa: BLE001 - a defect: one line for the user, the rest on request
        _show_traceback(options)
        about = str(error).strip().partition("\n")[0]
        _complain(
            f"unexpected {type(error).__name__}: {about}\n"
            "  hint: this is a defect; --traceback shows where it happened"
        )
        return REFUSED
    return code if isinstance(code, int) else 0


def _misused(error: Any) -> int:
    """Report wrong usage, and how to find out the right one."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return MISUSED
    message = error.format_message().strip().replace("\n\t", " ").replace("\n", " ")
    message = message.removeprefix("Invalid value: ").replace(": Value error, ", ": ")
    command = "fluss" if error.ctx is None else error.ctx.command_path
    _complain(f"{message}\n  hint: {command} -h shows how it is used")
    return MISUSED


def _show_traceback(options: Any) -> None:
    if options.traceback:
        import traceback

        traceback.print_exc()
