"""Lists and removes the files below a location of a lake; pyiceberg's FileIO cannot list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from fluss.errors import UnsupportedOperationError


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file below a location.

    Attributes:
        path: Its path, as the file system has it.
        name: The last part of its path.
        size_bytes: Its size.
        modified_ms: When it was written; None if the store does not say.
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
        UnsupportedOperationError: The store is not one of those that pyarrow reads.
    """

    def __init__(self, io: FileIO, location: str) -> None:
        if not isinstance(io, PyArrowFileIO):
            raise UnsupportedOperationError(
                f"The files at {location} cannot be listed through {type(io).__name__}.",
                hint="Local files, S3, GCS, OSS and HDFS can. Remove orphan files with another "
                "program, such as Spark's remove_orphan_files.",
            )
        scheme, netloc, self._root = PyArrowFileIO.parse_location(location, io.properties)
        self._io = io
        self._files = io.fs_by_scheme(scheme, netloc)

    def files(self) -> Iterator[StoredFile]:
        """List all files below the location."""
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
        """Return the path of a file that Iceberg knows by a location."""
        return PyArrowFileIO.parse_location(location, self._io.properties)[2]

    def remove(self, files: Iterable[StoredFile]) -> int:
        """Remove files; return how many exist and could not be removed."""
        left = 0
        for file in files:
            try:
                self._files.delete_file(file.path)
            except FileNotFoundError:
                continue
            except OSError:
                left += 1
        return left
