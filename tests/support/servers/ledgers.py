"""Reads the ledger of a data directory, and edits it as a kill or a power cut would leave it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fluss_server.data_layout import LEDGER
from fluss_server.ledger import DirectoryState, Head, Ledger
from fluss_server.system_boot import boot_id


def head_of(directory: Path) -> Head:
    with closing(Ledger.open(directory / LEDGER, is_durable=False)) as ledger:
        return ledger.found_head


def ended_cleanly(directory: Path) -> bool:
    return head_of(directory).state is DirectoryState.CLEAN


def as_killed(directory: Path) -> None:
    """Record that the last server was killed."""
    write_head(directory, state=DirectoryState.RUNNING, boot=boot_id())


def as_after_a_power_cut(directory: Path) -> None:
    """Record that the last server ran before the current boot of the system."""
    write_head(directory, state=DirectoryState.RUNNING, boot=b"another start..."[:16])


def write_head(directory: Path, **changes: object) -> None:
    head = replace(head_of(directory), **changes)
    with (directory / LEDGER).open("r+b") as file:
        file.write(head.to_bytes())
