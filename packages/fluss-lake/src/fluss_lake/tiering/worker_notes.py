"""The notes of workers about their tables, for `fluss tier status`: a small file for each worker.

The cluster knows how far a table has been copied, but not which errors occurred. So each worker
writes the result of each table's last round into a folder. Workers on several machines can share a
folder.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from fluss_lake.tiering.worker import RoundReport

_SUFFIX: Final = ".json"
# Older notes are ignored: their worker has stopped.
OLD_S: Final = 7 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNote:
    """A worker's note about its last round of a table.

    Attributes:
        cluster: The bootstrap servers.
        table: The table.
        worker: The worker.
        at_s: When the round ended, in seconds since 1970.
        rows: How many changes the last round with rows has copied.
        took_s: How long the last round took.
        error: Why the last round failed; empty if it did not fail.
        hint: The hint of the error.
        failures: How many rounds have failed since the last successful one.
    """

    cluster: str
    table: str
    worker: str
    at_s: float
    rows: int = 0
    took_s: float = 0.0
    error: str = ""
    hint: str = ""
    failures: int = 0


def worker_name() -> str:
    """The name of this process among workers."""
    return f"{socket.gethostname()}:{os.getpid()}"


class WorkerNotes:
    """The notes of one worker.

    Args:
        folder: The folder of notes; None to write none.
        cluster: The bootstrap servers.
        worker: The worker.
    """

    def __init__(self, folder: Path | None, cluster: str, worker: str) -> None:
        self._path = None if folder is None else folder / f"{worker.replace(':', '-')}{_SUFFIX}"
        self._cluster, self._worker = cluster, worker
        self._tables: dict[str, TableNote] = {}

    def add(self, report: RoundReport, now_s: float) -> None:
        """Note how a round has ended."""
        name = str(report.table)
        before = self._tables.get(name) or TableNote(
            cluster=self._cluster, table=name, worker=self._worker, at_s=0
        )
        note = replace(before, at_s=now_s, took_s=round(report.took_s, 3))
        if report.error is not None:
            note = replace(
                note,
                error=report.error.sentence,
                hint=report.error.hint or "",
                failures=before.failures + 1,
            )
        else:
            copied = 0 if report.committed is None else report.committed.changes
            note = replace(note, error="", hint="", failures=0, rows=copied or before.rows)
        self._tables[name] = note
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        text = json.dumps([asdict(each) for each in self._tables.values()])
        whole = self._path.with_suffix(".new")
        try:
            whole.write_text(text)
            whole.replace(self._path)
        except OSError:
            return  # a failure to write notes must not stop copying


def read_notes(folder: Path, cluster: str, now_s: float) -> dict[str, TableNote]:
    """The newest note of each table of a cluster."""
    newest: dict[str, TableNote] = {}
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            listed = json.loads(path.read_text())
            notes = [TableNote(**each) for each in listed]
        except (OSError, ValueError, TypeError):
            continue  # another worker is writing it, or it is of another release
        for note in notes:
            is_newer = note.table not in newest or newest[note.table].at_s < note.at_s
            if note.cluster == cluster and is_newer and now_s - note.at_s < OLD_S:
                newest[note.table] = note
    return newest
