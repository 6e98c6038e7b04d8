"""Lists and removes the files under a location of a lake. The FileIO of pyiceberg cannot list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from fluss.errors import UnsupportedOperationError


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file under a location.

    Attributes:
        path: The path in the file system.
        name: The last part of the path.
        size_bytes: The size of the file.
        modified_ms: When the file was written; None if the store does not report that.
    """

    path: str
    name: str
    size_bytes: int
    modified_ms: int | None


class FileLister:
    """Lists and removes files of a table.

    Args:
        io: The access to the files of the table.
        location: A location of the table.

    Raises:
        UnsupportedOperationError: pyarrow has no file system for the store.
    """

    def __init__(self, io: FileIO, location: str) -> None:
        if not isinstance(io, PyArrowFileIO):
            raise UnsupportedOperationError(
                f"The files at {location} cannot be listed through {type(io).__name__}.",
                hint="Files on local disks, S3, GCS, OSS and HDFS can be listed. Remove orphan files "
                "with another program, such as Spark's remove_orphan_files.",
            )
        scheme, netloc, self._root = PyArrowFileIO.parse_location(location, io.properties)
        self._io = io
        self._files = io.fs_by_scheme(scheme, netloc)

    def files(self) -> Iterator[StoredFile]:
        """List all files under the location."""
        selector = fs.FileSelector(self._root, allow_not_found=True, recursive=True)
        for info in self._files.get_file_info(selector):
            if info.type is fs.FileType.File:
                yield StoredFile(
                    path=info.path,
                    name=info.base_name,
                    size_bytes=info.size or 0,
                    modified_ms=None if info.mtime_ns is None else info.mtime_ns // 1_000_000,
                )

    def path_of(self, location: str) -> str:
        """Return the path of a file in the file system by its location in Iceberg."""
        return PyArrowFileIO.parse_location(location, self._io.properties)[2]

    def remove(self, files: Iterable[StoredFile]) -> int:
        """Remove files; return how many could not be removed. Missing files count as removed."""
        left = 0
        for file in files:
            try:
                self._files.delete_file(file.path)
            except FileNotFoundError:
                continue
            except OSError:
                left += 1
        return left
