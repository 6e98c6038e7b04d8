"""Fluss as a file system of fsspec: `fluss://host:9123/database/table/data.arrow`.

For looking around, and for tools that take nothing but files. Rule: a guest of `fluss.session`;
nothing is written here, and what a file cannot do (push down a filter, be sought in) is said and
not imitated. Engines read tables better by their own doors: `pl.scan_fluss`, `pd.read_fluss`.
"""

from fluss.errors import MissingExtraError

try:
    import fsspec as _fsspec  # noqa: F401 - only whether it is there
except ImportError as error:
    raise MissingExtraError(
        f"fsspec is not installed: {error}.", hint="pip install 'fluss-core[fsspec]'"
    ) from error

from fluss.fsspec.filesystem import FlussFileSystem

__all__ = ["FlussFileSystem"]
