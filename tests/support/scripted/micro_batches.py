"""Drives a stream reader as Spark does, without Spark, which saves seconds of Java per test.

Offsets travel as JSON, partitions as pickles, and a restarted query has only its checkpoint. The
checkpoint has the ends of micro-batches; the reader is asked for the first begin at each start, and
a query starts even where it has no rows. The rows are those that Spark would get, batch by batch.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fluss_spark import FlussDataSource
from fluss_spark.spark_types import arrow_schema
from fluss_spark.stream_reader import FlussStreamReader

BATCHES_MAX = 200


@dataclass(kw_only=True)
class MicroBatches:
    """A streaming query.

    Args:
        options: The options of `format("fluss")`.
        checkpoint: The end of each micro-batch, as JSON.
    """

    options: dict[str, str]
    checkpoint: list[str] = field(default_factory=list)
    reader: FlussStreamReader | None = None

    def start(self) -> FlussStreamReader:
        """Start, or restart from the checkpoint."""
        source = FlussDataSource(self.options)
        schema = source.schema()
        self.schema = arrow_schema(schema)
        made = source.streamReader(schema)
        assert isinstance(made, FlussStreamReader)
        self.reader = made
        return made

    def available_now(self) -> list[pa.Table]:
        """Return the result of a run with `trigger(availableNow=True)`."""
        self.start().prepareForTriggerAvailableNow()
        return self.drained()

    def drained(self) -> list[pa.Table]:
        """Return micro-batches until there are no more rows."""
        given: list[pa.Table] = []
        while len(given) < BATCHES_MAX:
            batch = self.next_batch()
            if batch is None:
                return given
            given.append(batch)
        raise AssertionError("it does not end")

    def next_batch(self) -> pa.Table | None:
        """Return one micro-batch; None where there are no new rows."""
        reader = self.reader or self.start()
        begin = self.begins()[-1]
        end = json.dumps(reader.latestOffset(json.loads(begin), reader.getDefaultReadLimit()))
        if end == begin and self.checkpoint:
            return None
        self.checkpoint.append(end)
        return self.read(begin, end)

    def begins(self) -> list[str]:
        """Return the begin of each micro-batch, and of the next one."""
        reader = self.reader or self.start()
        return [json.dumps(reader.initialOffset()), *self.checkpoint]

    def places(self) -> list[tuple[str, str]]:
        """Return the begin and the end of each micro-batch."""
        return list(zip(self.begins(), self.checkpoint, strict=False))

    def read(self, begin: str, end: str) -> pa.Table:
        """Return the rows between two offsets, task by task."""
        return (
            pa.concat_tables(self.tasks(begin, end)) if begin != end else self.schema.empty_table()
        )

    def tasks(self, begin: str, end: str) -> list[pa.Table]:
        """The rows of each task."""
        reader = self.reader or self.start()
        tasks = []
        for partition in reader.partitions(json.loads(begin), json.loads(end)):
            shipped = pickle.loads(pickle.dumps(partition))  # noqa: S301 - as Spark ships it
            batches = list(reader.read(shipped))
            assert all(batch.schema.equals(self.schema) for batch in batches)
            tasks.append(pa.Table.from_batches(batches, self.schema))
        return tasks or [self.schema.empty_table()]


def given(batches: list[pa.Table]) -> list[pa.Table]:
    """Those that have rows."""
    return [each for each in batches if each.num_rows]


def rows(batches: list[pa.Table]) -> list[dict[str, Any]]:
    """All rows of micro-batches."""
    return [row for each in batches for row in each.to_pylist()]
