"""Fluss as a file system of fsspec: `fluss://host:9123/database/table/data.arrow`.

For browsing, and for tools that can only read files. Rule: `fluss.scan` reads; nothing is written
here, and operations that a stream does not support (seeking) are refused, not emulated. The
adapters read tables better, with filters: `pl.scan_fluss`, `pd.read_fluss`.
"""

from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install

try:
    import fsspec as _fsspec  # noqa: F401 - only to check that it is installed
except ImportError as error:
    raise MissingExtraError(
        f"fsspec is not installed: {error}.", hint=how_to_install("fluss-core[fsspec]")
    ) from error

from fluss.fsspec.filesystem import FlussFileSystem

__all__ = ["FlussFileSystem"]
