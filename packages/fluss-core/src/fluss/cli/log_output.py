"""What a run reports beside its rows: warnings by default, more with `--verbose`, or less.

`GlobalOptions.note` changes the level of the log and whether progress is shown; both are as before
when the run is over.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from fluss.cli.global_options import PROGRESS_VARIABLE, GlobalOptions


class _ErrorOutput(logging.StreamHandler[TextIO]):
    """Writes to what is the standard error at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


class _Prefixed(logging.Formatter):
    """Puts the prefix of all messages before a line that does not have it."""

    def format(self, record: logging.LogRecord) -> str:
        return f"fluss: {super().format(record).removeprefix('fluss: ')}"


@contextmanager
def logging_as(options: GlobalOptions) -> Iterator[None]:
    """Show the log while a command runs, with the prefix of its errors before each line."""
    handler = _ErrorOutput()
    handler.setFormatter(_Prefixed())
    handler.addFilter(lambda record: not options.is_quiet or record.levelno >= logging.ERROR)
    logger = logging.getLogger("fluss")
    level, progress = logger.level, os.environ.get(PROGRESS_VARIABLE)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        os.environ.pop(PROGRESS_VARIABLE, None)
        if progress is not None:
            os.environ[PROGRESS_VARIABLE] = progress
