"""Makes a KV snapshot of a copy of a store's files: one column family, and only what readers need.

Fluss's clients open a snapshot with the default column family alone, and rocksdict with all that
its files name. So the one of the server (`kv_store.SERVER_FAMILY`) is dropped by a record at the
end of the manifest, as RocksDB itself drops one, and taken out of the options. RocksDB need not
open the copy for that, which would hold Python's lock. The format of the manifest is that of
RocksDB's logs: blocks of 32 KiB with records of checksum, length, type and data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from crc32c import crc32c

from fluss.errors import CorruptDataError
from fluss_server.kv.kv_store import CURRENT, SERVER_FAMILY
from fluss_server.log.log_files import replace_file, sync_directory

_BLOCK_BYTES: Final = 32 * 1024
_HEAD_BYTES: Final = 7
_FULL, _FIRST, _MIDDLE, _LAST = range(1, 5)
_MASK_DELTA: Final = 0xA282EAD8
# VersionEdit: the family with the id 1, which is the first that was added, is dropped.
_DROP: Final = b"\xc8\x01\x01\xca\x01"
_TABLE: Final = ".sst"
_OPTIONS: Final = "OPTIONS-"


def make_plain(folder: Path) -> tuple[str, ...]:
    """Make a snapshot of a copy of a store's files, and wait until it is on the disk.

    Returns:
        The names of its files.

    Raises:
        CorruptDataError: The files are not those of a store.
        OSError: The disk refused.
    """
    manifest = (folder / CURRENT).read_text().strip()
    names = sorted(each.name for each in folder.iterdir())
    options = max((each for each in names if each.startswith(_OPTIONS)), default=None, key=_number)
    if manifest not in names or options is None:
        why = f"{CURRENT} names {manifest}, and there are {names}"
        raise CorruptDataError(f"{folder} is no RocksDB: {why}.", what="store", at=0, why=why)
    _drop_family(folder / manifest)
    _forget_family(folder / options)
    kept = [each for each in names if each.endswith(_TABLE)] + [CURRENT, manifest, options]
    for name in set(names).difference(kept):
        (folder / name).unlink()
    sync_directory(folder)
    return tuple(sorted(kept))


def _number(name: str) -> int:
    return int(name.removeprefix(_OPTIONS))


def _drop_family(manifest: Path) -> None:
    records = manifest.read_bytes()
    # Replaced and not changed: a copy may be a hard link to the store's own file.
    replace_file(manifest, records + record_at(len(records), _DROP), durable=True)


def record_at(position: int, data: bytes) -> bytes:
    """Return a record of a RocksDB log for a position in its file."""
    written = bytearray()
    is_first = True
    while data or is_first:
        left = _BLOCK_BYTES - (position + len(written)) % _BLOCK_BYTES
        if left < _HEAD_BYTES:
            written += bytes(left)
            continue
        part, data = data[: left - _HEAD_BYTES], data[left - _HEAD_BYTES :]
        kind = (_FIRST if data else _FULL) if is_first else (_MIDDLE if data else _LAST)
        check = crc32c(bytes([kind]) + part)
        masked = (((check >> 15) | (check << 17)) + _MASK_DELTA) & 0xFFFFFFFF
        written += masked.to_bytes(4, "little") + len(part).to_bytes(2, "little")
        written += bytes([kind]) + part
        is_first = False
    return bytes(written)


def _forget_family(options: Path) -> None:
    """Take the sections of the server's family out of an options file."""
    sections = options.read_text().split("\n[")
    kept = [each for each in sections if f'"{SERVER_FAMILY}"]' not in each.partition("\n")[0]]
    replace_file(options, "\n[".join(kept).encode(), durable=True)
