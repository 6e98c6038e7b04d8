"""Chooses how to read the state of a bucket at a pinned offset, with the reason.

==============  ====================================  =============================================
strategy        reads                                 needs
==============  ====================================  =============================================
``scan_kv``     pages of a snapshot of the server's   a server that offers it (1.0)
``limit_scan``  all rows in one message               rows that fit one message
``snapshot``    the newest KV snapshot                one, and rocksdict
``changelog``   all changes from the first on         a log that nothing has been trimmed from
==============  ====================================  =============================================

A lake, where the table has one, is a fifth: its rows as of the offset of its snapshot. It is read
where the log still has the changes since then; `scan.lake_planner` finds it.

The first three, and the lake, give a state of their own moment, which the changelog then rolls to
the pin: forward from an older moment, back from a later one. Rolling back needs the rows before a
change, which a changelog of image `wal` does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from fluss.errors import (
    FlussError,
    InvalidValueError,
    MissingExtraError,
    OffsetOutOfRangeError,
    SnapshotNotFoundError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from fluss.install_hints import how_to_install
from fluss.model.did_you_mean import did_you_mean

ServedPath = Literal["scan_kv", "limit_scan", "snapshot", "changelog"]
ReadPath = ServedPath | Literal["lake"]
STRATEGIES: Final[tuple[ServedPath, ...]] = get_args(ServedPath)

# The reason for a strategy that the user chose.
ASKED_FOR: Final = "it was asked for"
# A bucket has at most as many rows as it has seen changes, and so many rows fit one message.
SMALL_CHANGES_MAX: Final = 100_000
_SNAPSHOT_EXTRA: Final = "fluss-core[snapshot]"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFacts:
    """The facts about a bucket that decide how its state is read.

    Attributes:
        pin: The offset at which the state is read.
        earliest: The first offset that the log still has.
        is_past: Whether the user named the pin, and it is not where the log ends now.
        offers_scan_kv: Whether the servers offer SCAN_KV.
        snapshot_offset: Where the newest KV snapshot stands; None where there is none.
        has_rocksdb: Whether snapshots can be opened.
        is_full_image: Whether the changelog has rows as they were before changes.
        expires: Whether rows expire (`table.kv.ttl`): the changelog does not say which have.
    """

    pin: int
    earliest: int
    is_past: bool
    offers_scan_kv: bool
    snapshot_offset: int | None
    has_rocksdb: bool
    is_full_image: bool
    expires: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the log still has every change."""
        return self.earliest == 0

    @property
    def snapshot_leads_to_pin(self) -> bool:
        """Whether a snapshot that can be opened is not later than the pin."""
        return (
            self.has_rocksdb
            and self.snapshot_offset is not None
            and self.earliest <= self.snapshot_offset <= self.pin
        )

    @property
    def snapshot_leads_back_to_pin(self) -> bool:
        """Whether a snapshot that can be opened is later than the pin, and can be rolled back."""
        return (
            self.has_rocksdb
            and self.is_full_image
            and self.snapshot_offset is not None
            and self.earliest <= self.pin < self.snapshot_offset
        )


def leads_to_pin(facts: StateFacts, lake_end: int) -> bool:
    """Whether the state of a lake, as of an offset, can be brought to the pin."""
    return facts.earliest <= lake_end <= facts.pin or lake_end == facts.pin


def choose_strategy(facts: StateFacts) -> tuple[ReadPath, str]:
    """Choose the best strategy, with the reason.

    Raises:
        OffsetOutOfRangeError: The log begins after the pin.
        UnsupportedOperationError: No strategy can reach the pin.
    """
    if facts.pin == 0:
        return "changelog", "nothing had happened yet at offset 0"
    if facts.expires:
        return _choose_with_expiry(facts)
    if facts.is_past and facts.is_whole:
        return "changelog", "the log has every change up to the offset asked for"
    if not facts.is_full_image:
        return _choose_rolling_forward(facts)
    if facts.earliest > facts.pin:
        raise _trimmed(facts)
    if facts.is_past and facts.snapshot_leads_to_pin:
        return "snapshot", "a KV snapshot is older than the offset asked for"
    if facts.offers_scan_kv:
        return "scan_kv", "the servers offer scans of their state"
    if facts.pin <= SMALL_CHANGES_MAX and not facts.is_past:
        return "limit_scan", f"{facts.pin} changes leave few enough rows for one message"
    if facts.snapshot_leads_to_pin or facts.snapshot_leads_back_to_pin:
        return "snapshot", f"a KV snapshot stands at offset {facts.snapshot_offset}"
    if facts.is_whole:
        return "changelog", f"the log has every change, and {_no_snapshot(facts)}"
    return "limit_scan", f"the log begins at offset {facts.earliest}, and {_no_snapshot(facts)}"


def needs_snapshots(strategy: str | None, facts: StateFacts) -> bool:
    """Whether the choice depends on KV snapshots, which take a request to list."""
    if strategy is not None:
        return strategy == "snapshot"
    if facts.pin == 0 or (facts.is_past and facts.is_whole):
        return False
    if facts.expires:
        return not facts.offers_scan_kv
    if facts.is_past or not facts.is_full_image:
        return True
    return not facts.offers_scan_kv and facts.pin > SMALL_CHANGES_MAX


def check_strategy(strategy: str, facts: StateFacts) -> tuple[ReadPath, str]:
    """Check a strategy that the user chose.

    Raises:
        InvalidValueError: There is no such strategy.
        FlussError: It cannot be used here; the hint says what it needs.
    """
    for known in STRATEGIES:
        if strategy == known:
            _check_possible(known, facts)
            return known, ASKED_FOR
    raise InvalidValueError(
        f"There is no strategy {strategy!r}.",
        hint=did_you_mean(strategy, STRATEGIES) or f"There are {', '.join(STRATEGIES)}.",
        strategy=strategy,
    )


def _choose_with_expiry(facts: StateFacts) -> tuple[ReadPath, str]:
    """Choose for a table whose rows expire: only the servers know which of them have."""
    if facts.is_past:
        raise UnsupportedOperationError(
            f"The state at offset {facts.pin} is not known any more: rows of this table expire "
            "(table.kv.ttl), and the changelog does not say which of them had.",
            hint="Read the present state, or the changes themselves; the strategy 'changelog' "
            "gives the state as if no row had expired.",
            offset=facts.pin,
        )
    if facts.offers_scan_kv and (facts.is_full_image or facts.earliest <= facts.pin):
        return "scan_kv", "the servers know which rows have expired, and offer scans"
    if facts.snapshot_leads_to_pin:
        return "snapshot", f"a KV snapshot stands at offset {facts.snapshot_offset}"
    return "limit_scan", "the servers know which rows have expired"


def _choose_rolling_forward(facts: StateFacts) -> tuple[ReadPath, str]:
    if facts.snapshot_leads_to_pin:
        return "snapshot", f"a KV snapshot stands at offset {facts.snapshot_offset}"
    if facts.is_whole:
        return "changelog", f"the log has every change, and {_no_snapshot(facts)}"
    if facts.offers_scan_kv and facts.earliest <= facts.pin:
        # Right as long as nothing is written until it is read; what comes after the pin cannot be
        # undone, and is refused then.
        return "scan_kv", f"the log begins at offset {facts.earliest}, and {_no_snapshot(facts)}"
    raise UnsupportedOperationError(
        f"The state at offset {facts.pin} cannot be found: the log begins at offset "
        f"{facts.earliest}, {_no_snapshot(facts)}, and a changelog of image 'wal' cannot be "
        "undone.",
        hint="Wait for the next KV snapshot, or set table.changelog.image = full for new tables."
        if facts.has_rocksdb
        else f"KV snapshots are read after: {how_to_install(_SNAPSHOT_EXTRA)}.",
        offset=facts.pin,
    )


def _check_possible(strategy: ReadPath, facts: StateFacts) -> None:
    if strategy == "changelog":
        if not facts.is_whole:
            raise OffsetOutOfRangeError(
                f"The log begins at offset {facts.earliest}: changes before it are gone.",
                hint="Another strategy does not need them.",
                offset=0,
            )
        return
    if strategy == "scan_kv" and not facts.offers_scan_kv:
        raise UnsupportedVersionError(
            "The servers do not offer SCAN_KV.",
            hint="Servers of the 1.0 line do; here 'limit_scan' reads all rows in one message.",
        )
    if strategy == "snapshot":
        _check_snapshot(facts)
    elif facts.is_full_image and facts.earliest > facts.pin:
        raise _trimmed(facts)


def _check_snapshot(facts: StateFacts) -> None:
    if not facts.has_rocksdb:
        raise MissingExtraError(
            "KV snapshots are RocksDB files, and rocksdict is not installed.",
            hint=how_to_install(_SNAPSHOT_EXTRA),
        )
    if facts.snapshot_offset is None:
        raise SnapshotNotFoundError(
            "The bucket has no KV snapshot yet.",
            hint="The first is taken one kv.snapshot.interval (10 min) after the first write.",
        )
    if facts.snapshot_offset > facts.pin:
        if not facts.is_full_image:
            raise backwards_without_images(facts.pin, facts.snapshot_offset)
        if facts.earliest > facts.pin:
            raise _trimmed(facts)


def backwards_without_images(pin: int, seen: int) -> FlussError:
    """The error where rows must be rolled back and the changelog has no rows before changes."""
    return UnsupportedOperationError(
        f"The rows that could be read are those of offset {seen}, and what they were at offset "
        f"{pin} cannot be determined: a changelog of image 'wal' does not have rows before a change.",
        hint="Plan the scan again while no program writes, or set table.changelog.image = full for "
        "new tables.",
        offset=pin,
    )


def _trimmed(facts: StateFacts) -> FlussError:
    return OffsetOutOfRangeError(
        f"The state at offset {facts.pin} cannot be found: the log begins at offset "
        f"{facts.earliest}.",
        hint=f"Ask for offset {facts.earliest} or later.",
        offset=facts.pin,
    )


def _no_snapshot(facts: StateFacts) -> str:
    if facts.snapshot_offset is None:
        return "there is no KV snapshot yet"
    if not facts.has_rocksdb:
        return f"KV snapshots cannot be opened ({how_to_install(_SNAPSHOT_EXTRA)})"
    return f"the KV snapshot stands at offset {facts.snapshot_offset}"
