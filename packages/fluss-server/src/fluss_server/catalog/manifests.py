"""Manifests: files in the directories of databases and tables that describe them.

The catalog is authoritative. A manifest repeats a part of it in the directory it describes, with
the number of the change that wrote it. So a catalog from an earlier moment contradicts the
directories, and a lost one can be rebuilt from them. A manifest is JSON and a last line with its
checksum. It is written after the change is in the catalog. A manifest that is missing, damaged or
older is written again; a newer one, or one of another directory, is a contradiction.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crc32c import crc32c

from fluss_server.damage_errors import DamagedDataError, damaged
from fluss_server.log import log_files as files

if TYPE_CHECKING:
    from fluss_server.catalog.catalog_entries import DatabaseEntry, TableEntry

_LOG = logging.getLogger(__name__)
_LAST_LINE: Final = "\ncrc32c "
_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of one directory.

    Args:
        kind: "database" or "table".
        identity: The fields that never change.
        content: All other fields.
    """

    kind: str
    identity: Mapping[str, Any]
    content: Mapping[str, Any]


def manifest_of_database(entry: DatabaseEntry) -> Manifest:
    """Return the manifest of a database."""
    return Manifest(
        kind="database",
        identity={"name": entry.name},
        content={
            "descriptor": json.loads(entry.descriptor.to_json()),
            "created": entry.created_ms,
            "modified": entry.modified_ms,
        },
    )


def manifest_of_table(
    entry: TableEntry,
    numbers: Mapping[str, int],
    bucket_counts: Mapping[int, int],
    lake: Mapping[str, Any] | None = None,
) -> Manifest:
    """Return the manifest of a table.

    Args:
        entry: The table.
        numbers: Its next auto-increment numbers.
        bucket_counts: The bucket counts of its partitions by their ids, if it was rescaled.
        lake: What has been tiered of it.
    """
    extras: dict[str, Any] = {}
    if lake is not None:
        extras["lake"] = lake
    if entry.bucket_count_epoch:
        extras["bucket_count_epoch"] = entry.bucket_count_epoch
        extras["bucket_counts"] = {str(each): count for each, count in bucket_counts.items()}
    return Manifest(
        kind="table",
        identity={
            "database": entry.path.database_name,
            "name": entry.path.table_name,
            "id": entry.table_id,
        },
        content={
            "schema_id": entry.schema_id,
            "descriptor": json.loads(entry.descriptor.to_json()),
            "schemas": {
                str(schema_id): json.loads(schema.to_json())
                for schema_id, schema in entry.schemas.items()
            },
            "numbers": dict(numbers),
            **extras,
            "created": entry.created_ms,
            "modified": entry.modified_ms,
        },
    )


class Manifests:
    """The manifests of one data directory.

    Args:
        directory: The data directory.
        directory_id: Its id.
    """

    def __init__(self, directory: Path, directory_id: bytes) -> None:
        self._directory = directory
        self._directory_id = directory_id.hex()

    def put(self, path: Path, manifest: Manifest, *, sequence: int) -> None:
        """Write a manifest, and create its directory.

        A manifest that cannot be written now is written by the next start.
        """
        fields = {
            "kind": manifest.kind,
            "directory": self._directory_id,
            "sequence": sequence,
            **manifest.identity,
            **manifest.content,
        }
        text = json.dumps(fields, ensure_ascii=False)
        data = f"{text}{_LAST_LINE}{crc32c(text.encode()):08x}\n".encode()
        try:
            target = self._directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(target, data, durable=False)
        except OSError:
            _LOG.exception("%s could not be written; the next start writes it", path)

    def make_directory(self, path: Path) -> None:
        """Create the directory of a partition; its name identifies it, so it has no manifest."""
        try:
            (self._directory / path).mkdir(parents=True, exist_ok=True)
        except OSError:
            _LOG.exception("%s could not be made; the next start makes it", path)

    def remove(self, path: Path) -> None:
        """Remove a manifest, and its directory where it is empty then."""
        with contextlib.suppress(OSError):
            (self._directory / path).unlink(missing_ok=True)
            (self._directory / path).parent.rmdir()

    def keep(self, path: Path, manifest: Manifest, *, sequence: int) -> DamagedDataError | None:
        """Compare a manifest with the catalog, and write it again where it is missing or old.

        Args:
            path: The manifest's path, relative to the data directory.
            manifest: Its expected content.
            sequence: The number of the catalog's last change.

        Returns:
            The contradiction; None where there is none.
        """
        target = self._directory / path
        found = read_manifest(target)
        if found is None:
            if target.exists():
                _LOG.warning("%s is damaged; it is written again from the catalog", target)
        else:
            why = self._contradiction(found, manifest, sequence)
            if why is not None:
                return damaged(target, why)
            known = {"kind": manifest.kind, "directory": self._directory_id}
            if found == {
                **known,
                "sequence": found["sequence"],
                **manifest.identity,
                **manifest.content,
            }:
                return None
        self.put(path, manifest, sequence=sequence)
        return None

    def _contradiction(
        self, found: Mapping[str, Any], manifest: Manifest, sequence: int
    ) -> str | None:
        expected = {
            "kind": manifest.kind,
            "directory": self._directory_id,
            **manifest.identity,
        }
        for name, value in expected.items():
            if found.get(name) != value:
                return (
                    f"says {name} {found.get(name)!r} where {value!r} belongs: directories or files "
                    "were exchanged"
                )
        if found["sequence"] > sequence:
            return (
                f"was written by change {found['sequence']} of the catalog, which ends with change "
                f"{sequence}: the catalog is from an earlier moment"
            )
        return None


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Read a manifest; None where it is missing or damaged."""
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX).decode()
        body, separator, crc = text.rpartition(_LAST_LINE)
        if not separator or crc != f"{crc32c(body.encode()):08x}\n":
            return None
        found = json.loads(body)
    except (OSError, ValueError):
        return None
    is_whole = isinstance(found, dict) and isinstance(found.get("sequence"), int)
    return found if is_whole else None
