"""Remembers how far an import has come, so that the same command continues it after a kill.

A file in the user's state folder belongs to one command: these files into this table. It is written
before rows are sent and after they are acknowledged, and is deleted when the import is complete.
It names the table by its id and the time of its creation, and the files by size and time of change.
An import into a table that was created again begins from the start; one whose files have changed is
refused.

Rows are written in *segments*. The state has the number of rows of the segment in flight, so that
every attempt cuts the same rows: `fluss.exactly_once` finds out which of them are in the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final, Self

from fluss.cli.files.input_files import InputFile
from fluss.cli.user_folders import state_folder
from fluss.errors import InvalidValueError
from fluss.session import Table

# A server forgets after 7 days what was registered for a segment, and its writers.
SEGMENT_AGE_MAX_S: Final = 6 * 24 * 3_600
_FOLDER: Final = "imports"
_FORMAT: Final = 1


def _now_s() -> float:
    return time.time_ns() / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an import has come.

    Attributes:
        run: The name of the import, from which servers recognise its segments.
        rows: How many first rows of the files are certainly done: in the table, or left out.
        skipped: How many of them were left out, as --skip of the first run asked.
        segment: The number of the segment in flight, or of the next one.
        segment_rows: How many rows that has; 0 if none is in flight.
        began_s: When the segment in flight was first begun.
    """

    run: str
    rows: int
    skipped: int = 0
    segment: int = 0
    segment_rows: int = 0
    began_s: float = 0.0


class ImportState:
    """The state of one import. One process at a time has it.

    Args:
        path: Its file; None if it cannot be kept.
        table: The table, as text.
        files: The files, with size and time of change.
        options: The options that change which rows are written.
        skip: How many rows a new import leaves out at the beginning.
        now: The time, in seconds.
    """

    def __init__(
        self,
        path: Path | None,
        table: str,
        files: Sequence[Sequence[Any]],
        options: Mapping[str, Any],
        *,
        skip: int = 0,
        now: Callable[[], float] = _now_s,
    ) -> None:
        self._path = path
        self._files = [list(each) for each in files]
        self._identity = {
            "format": _FORMAT,
            "table": table,
            "files": self._files,
            "options": dict(options),
        }
        self._now = now
        self._lock: IO[str] | None = None
        self.is_continued = False
        self.progress = Progress(run=uuid.uuid4().hex, rows=skip, skipped=skip)

    @classmethod
    def of(
        cls,
        table: Table,
        words: Sequence[str],
        files: Sequence[InputFile],
        *,
        options: Mapping[str, Any],
        skip: int | None,
        restart: bool,
        now: Callable[[], float] = _now_s,
    ) -> Self:
        """Open the state of an import, or begin a new one.

        Args:
            table: The table.
            words: The files, globs and folders as the command names them.
            files: The files that these are now.
            options: The options that change which rows are written.
            skip: How many rows to leave out; this begins a new import.
            restart: Whether a state of an earlier run is forgotten.
            now: The time, in seconds.

        Raises:
            InvalidValueError: The files have changed since, or another process has the state.
        """
        named = [os.path.realpath(each) for each in words]
        digest = blake2b("\n".join([table.name, *named]).encode(), digest_size=16).hexdigest()
        try:
            path = state_folder(_FOLDER) / f"{digest}.json"
        except OSError:
            path = None
        identity = f"{table.name} {table.info.table_id} {table.info.created_time}"
        sizes = [[os.path.realpath(each.file), each.size, each.changed_ns] for each in files]
        state = cls(path, identity, sizes, options, skip=skip or 0, now=now)
        state.lock()
        try:
            if not restart and skip is None:
                state.load()
        except BaseException:
            state.unlock()
            raise
        return state

    @property
    def is_kept(self) -> bool:
        """Whether there is a place to keep it."""
        return self._path is not None

    def lock(self) -> None:
        """Keep other processes from continuing the same import.

        Raises:
            InvalidValueError: Another process does.
        """
        if self._path is None:
            return
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return
        file = self._path.with_suffix(".lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InvalidValueError(
                "Another process is importing these files into this table.",
                hint="wait for it to end; the rows would be written twice",
            ) from None
        self._lock = file

    def unlock(self) -> None:
        """Let other processes continue the import. Idempotent."""
        lock, self._lock = self._lock, None
        if lock is not None and self._path is not None:
            if not self._path.exists():
                self._path.with_suffix(".lock").unlink(missing_ok=True)
            lock.close()

    def load(self) -> None:
        """Continue where an earlier run ended, if there was one.

        Raises:
            InvalidValueError: The files or the options have changed since, or the segment in flight
                is too old.
        """
        found = self._read()
        if found is None or found["table"] != self._identity["table"]:
            return  # the table was dropped, and the rows with it
        progress = Progress(**found["progress"])
        self._check_same(found, progress)
        if progress.segment_rows and self._now() - progress.began_s > SEGMENT_AGE_MAX_S:
            raise InvalidValueError(
                f"An import of these files ended more than {SEGMENT_AGE_MAX_S // 86_400} days ago "
                f"while rows {progress.rows + 1:,} to {progress.rows + progress.segment_rows:,} were "
                "in flight; servers no longer know which of them are in.",
                hint=f"look at the table; then --skip {progress.rows} continues before these rows, "
                f"--skip {progress.rows + progress.segment_rows} after them",
            )
        self.is_continued = True
        self.progress = progress

    def begin_segment(self, rows: int) -> None:
        """Note that rows are about to be sent; those of a segment in flight stay the same."""
        if not self.progress.segment_rows:
            self.progress = replace(self.progress, segment_rows=rows, began_s=self._now())
            self.save()

    def end_segment(self, rows: int) -> None:
        """Note that all rows that were sent, which may be fewer than planned, are acknowledged."""
        self.progress = replace(
            self.progress,
            rows=self.progress.rows + rows,
            segment=self.progress.segment + 1,
            segment_rows=0,
        )
        self.save()

    def abandon_segment(self) -> None:
        """Note that nothing of the segment in flight was sent."""
        self.progress = replace(self.progress, segment_rows=0)
        self.save()

    def save(self) -> None:
        """Write the file; it is complete, or the one before, whatever happens meanwhile."""
        if self._path is None:
            return
        text = json.dumps({**self._identity, "progress": asdict(self.progress)})
        unfinished = self._path.with_suffix(".unfinished")
        with unfinished.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path)

    def forget(self) -> None:
        """Delete the file: the import is complete, or nothing of it is in the table."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any] | None:
        if self._path is None:
            return None
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self._path.read_text())
            if isinstance(found, dict) and found.get("format") == _FORMAT:
                return found
        return None

    def _check_same(self, found: Mapping[str, Any], progress: Progress) -> None:
        if found["files"] == self._identity["files"] and (
            found["options"] == self._identity["options"]
        ):
            return
        before, now = found["files"], self._files
        doubt = f", and up to {progress.segment_rows:,} after them" if progress.segment_rows else ""
        raise InvalidValueError(
            f"An import of these files ended early, and {_change(before, now)} since: rows 1 to "
            f"{progress.rows:,} of the files are in{doubt}.",
            hint=f"--skip {progress.rows} continues after the rows that are in, where those of the "
            "files are still the same; --restart writes all rows, also these",
        )


def _change(before: Sequence[Sequence[Any]], now: Sequence[Sequence[Any]]) -> str:
    """Describe what is different between two lists of files."""
    known = {name: rest for name, *rest in before}
    for name, *rest in now:
        if name not in known:
            return f"the file {name} has come"
        if known.pop(name) != rest:
            return f"the file {name} has changed"
    if known:
        return f"the file {next(iter(known))} is gone"
    return "the options or the order of the files have changed"
