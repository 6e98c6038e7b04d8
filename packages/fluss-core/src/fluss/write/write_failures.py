"""The error of a writer that could not write all rows: how far it came, and what to do next.

Each batch has its own error (`write.plan_sender`), which the handles of its rows raise. A flush or
a frame raises one error for all of them.
"""

from __future__ import annotations

from typing import Final

from fluss.errors import FlussError
from fluss.hints import Hint, HintKey
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine
from fluss.write.plan_sender import LOOK_FIRST, WRITE_AGAIN
from fluss.write.write_tally import WriteProgress

_OF_ONE_BATCH: Final = frozenset({LOOK_FIRST, WRITE_AGAIN})


def failed_write(
    table: TableInfo, failure: FlussError, progress: WriteProgress, *, is_whole_again: bool = False
) -> FlussError:
    """The error of a write, from the error of one of its batches.

    Args:
        table: The table.
        failure: Why a batch failed.
        progress: What became of all rows.
        is_whole_again: Whether all rows may be written again, in any table.
    """
    error = failure.without_context()
    known = [each for each in error.hints if each not in _OF_ONE_BATCH]
    error.facts |= {
        "table": str(table.table_path),
        "progress": progress,
        "in_doubt": progress.in_doubt > 0,
    }
    return error.add_context(
        during=f"Writing to {table.table_path} failed, with {progress}",
        hint=(_what_next(table, progress, is_whole_again=is_whole_again), *known),
    )


def _what_next(table: TableInfo, progress: WriteProgress, *, is_whole_again: bool) -> Hint:
    adds_up = table.options.merge_engine is MergeEngine.AGGREGATION
    if is_whole_again or (table.has_primary_key() and not adds_up):
        return Hint(HintKey.WRITE_ALL_AGAIN)
    if not progress.acknowledged and not progress.in_doubt:
        return Hint(HintKey.WRITE_NOTHING_IS_THERE)
    key = HintKey.WRITE_THE_REST_AND_LOOK if progress.in_doubt else HintKey.WRITE_THE_REST
    return Hint(key, first=progress.first_missing)
