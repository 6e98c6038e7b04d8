"""One round of a table, step by step, with the functions that any driver uses."""

from __future__ import annotations

import pickle
import time
from typing import Any

from fluss_lake.tiering.lake_table import file_io
from fluss_lake.tiering.range_task import WrittenRange
from fluss_lake.tiering.round_driver import (
    Committed,
    Round,
    RoundOptions,
    begin_round,
    commit_round,
)
from fluss_lake.tiering.write_range import write_range


def begun(table: Any, **options: Any) -> Round:
    """A round that has begun, of a table of a session."""
    handle = table.__fluss_table__()
    connection = handle.connection
    now = connection.engine.run(connection.table(handle.info.table_path))
    return begin_round(now, RoundOptions(**options), now_ms=time.time_ns() // 1_000_000)


def written(round_: Round) -> list[WrittenRange]:
    """Carry out its tasks, as another process would: from pickled tasks to pickled results."""
    results = []
    for each in round_.tasks:
        task = pickle.loads(pickle.dumps(each))  # noqa: S301 - our own
        io = file_io(round_.table.info, task.target.location, round_.options.settings)
        result = write_range(task, round_.table, io)
        results.append(pickle.loads(pickle.dumps(result)))  # noqa: S301 - our own
    return results


def one_round(table: Any, **options: Any) -> Committed:
    """A whole round."""
    round_ = begun(table, **options)
    return commit_round(round_, written(round_))
