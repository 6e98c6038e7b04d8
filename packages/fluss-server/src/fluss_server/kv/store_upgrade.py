"""Rewrites the stores of earlier versions, once.

Their rows had a byte in front of each key and shared the column family with the server's state, and
their files were in a format that Fluss's RocksDB does not read. A new store is written beside the
old one and takes its place. An upgrade that is broken off is begun again, or finished where the new
store was complete.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from fluss_server.kv.kv_store import CURRENT, SERVER_FAMILY, open_database, without_log
from fluss_server.log.log_files import sync_directory

_LOG = logging.getLogger(__name__)
_FRESH: Final = ".new"
_OLD: Final = ".old"
_ROW: Final = b"\x01"
_AFTER_ROWS: Final = b"\x02"
_STATE: Final = {b"\x00state": b"state", b"\x00identity": b"identity"}
_ROWS_PER_WRITE: Final = 20_000


def finish_upgrade(folder: Path) -> None:
    """Finish an upgrade that was broken off after the new store was complete, or undo it.

    Raises:
        OSError: The disk refused.
    """
    fresh, old = _beside(folder)
    if old.exists():
        if not folder.exists():
            (fresh if fresh.exists() else old).rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    if fresh.exists():
        shutil.rmtree(fresh)


def upgrade(folder: Path) -> None:
    """Rewrite the store in a folder if an earlier version made it.

    Raises:
        Exception: As of rocksdict, or an OSError: the disk refused, or the files are damaged.
    """
    from rocksdict import Options, Rdict

    if not (folder / CURRENT).exists():
        return
    families = Rdict.list_cf(str(folder), Options(raw_mode=True))
    if SERVER_FAMILY in families:
        return
    _LOG.warning("The rows in %s are rewritten for this version.", folder)
    fresh, old = _beside(folder)
    source = Rdict(str(folder), Options(raw_mode=True))
    try:
        _rewrite(source, fresh)
    finally:
        source.close()
    folder.rename(old)
    fresh.rename(folder)
    sync_directory(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _beside(folder: Path) -> tuple[Path, Path]:
    return folder.with_name(folder.name + _FRESH), folder.with_name(folder.name + _OLD)


def _rewrite(source: Any, fresh: Path) -> None:
    from rocksdict import WriteBatch

    fresh.mkdir()
    database, server = open_database(fresh)
    try:
        rows = _rows_of(source)
        while chunk := list(islice(rows, _ROWS_PER_WRITE)):
            batch = WriteBatch(raw_mode=True)
            for key, value in chunk:
                batch.put(key, value)
            database.write(batch, without_log())
        database.flush(wait=True)
        for old_name, name in _STATE.items():
            value = source.get(old_name)
            if value is not None:
                server.put(name, value, without_log())
        server.flush(wait=True)
    finally:
        database.close()
        server.close()


def _rows_of(source: Any) -> Iterator[tuple[bytes, bytes]]:
    cursor = source.iter()
    cursor.seek(_ROW)
    while cursor.valid() and cursor.key() < _AFTER_ROWS:
        yield cursor.key()[1:], cursor.value()
        cursor.next()
    cursor.status()  # a damaged block ends the rows, too
