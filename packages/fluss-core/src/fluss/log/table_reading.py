"""Makes fetchers and decoders of one table, with the settings and caches of its connection."""

from __future__ import annotations

from collections.abc import Sequence

from fluss.connection.connection import TableHandle
from fluss.log.decode import Decoder
from fluss.log.fetch_messages import FetchTarget
from fluss.log.fetcher import Fetcher
from fluss.log.log_services import remote_log_reader
from fluss.log.plan_fetch import FetchLimits
from fluss.log.server_filter import pruning_predicate
from fluss.model.predicates.predicate import Predicate
from fluss.records.filter.row_filter import RowFilter


def table_fetcher(
    table: TableHandle, target: FetchTarget, *, limits: FetchLimits, is_bounded: bool
) -> Fetcher:
    """Make a fetcher without subscriptions, on the engine's loop."""
    connection = table.connection
    return Fetcher(
        connection.cluster,
        table.schemas,
        target,
        limits=limits,
        is_bounded=is_bounded,
        magic_1=connection.magic_1,
        remote=remote_log_reader(connection),
    )


def table_decoder(
    table: TableHandle, columns: Sequence[int] | None, predicate: Predicate | None = None
) -> Decoder:
    """Make a decoder of fetched bytes.

    Args:
        table: The table.
        columns: The positions of the columns, in the requested order; None for all.
        predicate: Which rows to keep; None for all. Servers that know statistics leave out batches
            that have none of them; which rows are kept is decided here.
    """
    connection, schema = table.connection, table.info.schema
    row_filter = pruning = None
    if predicate is not None:
        row_filter = RowFilter(predicate, schema)
        if connection.magic_1 == "statistics":
            pruning = pruning_predicate(predicate, schema)
    return Decoder(
        table.info,
        table.schemas,
        columns,
        magic_1=connection.magic_1,
        checks_crc=connection.options.scanner_log_check_crc,
        row_filter=row_filter,
        pruning=pruning,
    )
