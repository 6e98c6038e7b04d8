"""Opens a data directory: its catalog and its ledger together, or neither.

An empty directory is new. A directory with a catalog and no ledger is from an earlier version and
is upgraded once. In any other case catalog and ledger must agree on the number of the catalog's
last change and on the checksum of its rows. The catalog may be one change ahead: a server that is
killed between the two writes leaves that. Any other difference ends the start before anything is
changed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_store import CatalogStore, Contents, Seal, read_contents
from fluss_server.catalog.directory_tree import TreeCheck
from fluss_server.catalog.manifests import Manifests
from fluss_server.damage_errors import damaged, raise_found
from fluss_server.data_layout import CATALOG, CLEAN_MARK, DATA, LEDGER
from fluss_server.ledger import DirectoryState, Head, Ledger
from fluss_server.server_config import ServerConfig

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDirectory:
    """A data directory whose catalog and ledger agree.

    Args:
        path: The directory.
        catalog: The databases, tables and partitions.
        store: The catalog's file.
        ledger: The record of which logs must exist.
        adopts: Whether an earlier version created the directory.
    """

    path: Path
    catalog: Catalog
    store: CatalogStore
    ledger: Ledger
    adopts: bool

    @property
    def was_clean(self) -> bool:
        """Whether the last server stopped cleanly, so that no log needs recovery."""
        return self.ledger.found_head.state is DirectoryState.CLEAN

    def begin(self) -> None:
        """Record that this server uses the directory from now on.

        Raises:
            OSError: The disk refused.
        """
        self.store.begin(
            self.ledger.directory_id,
            on_seal=lambda seal: self.ledger.seal(
                seal.sequence, seal.check, self.catalog.next_numbers
            ),
            refuse_change=self._refuse_change,
        )
        self.ledger.begin()
        (self.path / CLEAN_MARK).unlink(missing_ok=True)
        self.catalog.remove_manifests()

    def _refuse_change(self) -> None:
        self.store.check_in_place()
        self.ledger.check()

    def close(self, *, is_clean: bool) -> None:
        """Close catalog and ledger.

        Args:
            is_clean: Whether every log is closed.

        Raises:
            OSError: The disk refused.
        """
        try:
            self.catalog.close()
            if is_clean:
                self.ledger.end()
        finally:
            self.ledger.close()


def open_directory(config: ServerConfig) -> OpenDirectory:
    """Open catalog and ledger of a data directory, and compare them with its tree.

    Raises:
        LocalServerError: Something is damaged or missing, or contradicts the rest.
        OSError: The disk refused.
    """
    directory = config.directory
    contents = _contents_of(directory / CATALOG)
    ledger = _open_ledger(config, contents)
    store: CatalogStore | None = None
    try:
        if ledger.found_head.state is not DirectoryState.NEW:
            _compare(directory, ledger.found_head, contents)
        else:
            _check_new(directory, contents)
        store = CatalogStore(directory / CATALOG, is_durable=config.is_durable)
        manifests = Manifests(directory, ledger.directory_id)
        catalog = Catalog(store, manifests)
        tree = TreeCheck(directory, catalog, ledger, manifests, sequence=store.contents.sequence)
        raise_found(tree.find())
        tree.forget_dropped()
    except BaseException:
        if store is not None:
            store.close()
        ledger.close()
        raise
    adopts = (
        ledger.found_head.state is DirectoryState.NEW
        and contents is not None
        and not contents.has_checks
    )
    return OpenDirectory(path=directory, catalog=catalog, store=store, ledger=ledger, adopts=adopts)


def _contents_of(path: Path) -> Contents | None:
    """Read the catalog's own checksums; None where the file is missing or empty."""
    if not path.exists():
        return None
    found = read_contents(path)
    return found if found.version else None


def _open_ledger(config: ServerConfig, contents: Contents | None) -> Ledger:
    path = config.directory / LEDGER
    if path.exists():
        return Ledger.open(path, is_durable=config.is_durable)
    if contents is not None and contents.has_checks:
        raise damaged(path, f"is missing; the catalog had {contents.sequence} changes")
    _check_new(config.directory, contents)
    if contents is not None:
        _LOG.warning(
            "%s was created by an earlier version of fluss-server. It is upgraded: its logs are "
            "checked once, and earlier versions cannot open it any more.",
            config.directory,
        )
    return Ledger.create(path, is_durable=config.is_durable)


def _has_tables(directory: Path) -> bool:
    data = directory / DATA
    return data.is_dir() and any(data.iterdir())


def _catalog_missing(directory: Path) -> Exception:
    path = directory / CATALOG
    state = "is empty" if path.exists() else "is missing"
    return damaged(path, f"{state}, and it names what is in {directory / DATA}")


def _check_new(directory: Path, contents: Contents | None) -> None:
    """Refuse a directory whose unfinished ledger is neither new nor being upgraded."""
    if contents is None and _has_tables(directory):
        raise _catalog_missing(directory)
    if contents is not None and contents.has_checks and contents.sequence > 1:
        raise damaged(directory / LEDGER, "is not finished: a repair was broken off")


def _compare(directory: Path, head: Head, contents: Contents | None) -> None:
    path, ledger = directory / CATALOG, directory / LEDGER
    if contents is None:
        state = "is empty" if path.exists() else "is missing"
        raise damaged(path, f"{state}; it had {head.sequence} changes, by {ledger}")
    if not contents.has_checks:
        raise damaged(path, f"is one of an earlier version, and {ledger} is not")
    if contents.directory_id != head.directory_id:
        raise damaged(path, f"belongs to another data directory than {ledger}")
    if contents.sequence < head.sequence:
        raise damaged(
            path,
            f"ends with change {contents.sequence}, and {ledger} knows {head.sequence}: the last "
            f"{head.sequence - contents.sequence} changes are lost. Its write-ahead log is "
            f"{path}-wal",
        )
    if contents.sequence > head.sequence + 1:
        raise damaged(
            ledger,
            f"knows change {head.sequence} of the catalog, and {path} has {contents.sequence}: the "
            "ledger is from an earlier moment",
        )
    if contents.sequence == head.sequence and contents.seal != Seal(
        sequence=head.sequence, check=head.check
    ):
        raise damaged(path, f"is not the one that {ledger} knows: they have another history")
