"""How the demo ends: signals that close the shop, and a directory that is always removed."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

# Ctrl-C, and what `kill` and a closed terminal send. Windows has no SIGHUP.
_INTERRUPT: Final = (signal.SIGINT, signal.SIGTERM)
_TERMINATE: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_SIGNAL_CODE: Final = 128  # a shell reports this plus the number of the signal

Handler = Callable[[int, FrameType | None], Any]


@contextmanager
def end_cleanly() -> Iterator[None]:
    """Let `kill` and a closed terminal end the program as an exception, so that it cleans up."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(_SIGNAL_CODE + number)

    with _handled(_TERMINATE, leave):
        yield


@contextmanager
def closing_time() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; a second one interrupts.

    An exception could fall between a write and its entry in the shop's books.
    """
    is_closing = threading.Event()

    def close(_: int, __: FrameType | None) -> None:
        if is_closing.is_set():
            raise KeyboardInterrupt
        is_closing.set()

    with _handled(_INTERRUPT, close):
        yield is_closing


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary directory; a signal during its removal does not leave a part of it."""
    folder = Path(tempfile.mkdtemp(prefix="fluss-demo-"))
    try:
        yield folder
    finally:
        with _handled({*_INTERRUPT, *_TERMINATE}, signal.SIG_IGN):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _handled(numbers: Iterable[int], handler: Handler | signal.Handlers) -> Iterator[None]:
    """Use another handler of signals for some time; only the main thread has any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with contextlib.ExitStack() as stack:
        for number in numbers:
            stack.callback(signal.signal, number, signal.signal(number, handler))
        yield
