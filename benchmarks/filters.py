"""The speed of filters, compared with hand-written calls of pyarrow's kernels.

1 000 000 and 10 000 rows of five columns. "ours" finds the positions of a predicate's rows and
takes those, as a scan does; "pyarrow" is the same condition written with `pyarrow.compute`, and the
rows filtered by its mask. CPU time is compared, because it does not depend on other load.

    ./dev bench filters
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks._measure import interleaved, print_table
from fluss.model.predicates.predicate import Predicate, col
from fluss.model.schema.schema import Schema
from fluss.records.filter.row_filter import RowFilter

ROWS = 1_000_000
REPEATS = 3
FEW = [f"user-{each}" for each in range(20)]
SINCE, UNTIL = datetime(1980, 1, 1, tzinfo=UTC), datetime(1990, 1, 1, tzinfo=UTC)
HALF = Decimal(500_000)

Mask = Callable[[pa.RecordBatch], pa.Array]


def batch_of() -> pa.RecordBatch:
    """Return the rows; a tenth of `i` is NULL."""
    rng = np.random.default_rng(1)
    return pa.RecordBatch.from_pydict(
        {
            "i": pa.array(rng.integers(0, 1_000, ROWS), mask=rng.random(ROWS) < 0.1),
            "d": rng.random(ROWS),
            "s": [f"user-{each}" for each in rng.integers(0, 5_000, ROWS)],
            "ts": pa.array(rng.integers(0, 10**12, ROWS)).cast(pa.timestamp("ms", "UTC")),
            "p": pa.array(rng.integers(0, 10**6, ROWS)).cast(pa.decimal128(19, 0)),
        }
    )


CASES: list[tuple[str, Predicate, Mask]] = [
    ("i > 500", col("i") > 500, lambda b: pc.greater(b["i"], 500)),
    (
        "i > 500 AND d < 0.5",
        (col("i") > 500) & (col("d") < 0.5),
        lambda b: pc.and_kleene(pc.greater(b["i"], 500), pc.less(b["d"], 0.5)),
    ),
    (
        "i > 900 OR d < 0.1",
        (col("i") > 900) | (col("d") < 0.1),
        lambda b: pc.or_kleene(pc.greater(b["i"], 900), pc.less(b["d"], 0.1)),
    ),
    ("s = 'user-7'", col("s") == "user-7", lambda b: pc.equal(b["s"], "user-7")),
    ("s IN (20)", col("s").is_in(FEW), lambda b: pc.is_in(b["s"], value_set=pa.array(FEW))),
    (
        "s STARTS WITH 'user-1'",
        col("s").starts_with("user-1"),
        lambda b: pc.starts_with(b["s"], "user-1"),
    ),
    (
        "ts in ten years",
        (col("ts") >= SINCE) & (col("ts") < UNTIL),
        lambda b: pc.and_kleene(
            pc.greater_equal(b["ts"], pa.scalar(SINCE, b["ts"].type)),
            pc.less(b["ts"], pa.scalar(UNTIL, b["ts"].type)),
        ),
    ),
    (
        "p > 500000",
        col("p") > HALF,
        lambda b: pc.greater(b["p"], pa.scalar(HALF, b["p"].type)),
    ),
]


def main() -> None:
    """Measure and print."""
    whole = batch_of()
    schema = Schema(whole.schema)
    rows = []
    for batch in (whole, whole.slice(0, 10_000)):
        for name, predicate, mask in CASES:
            chosen = RowFilter(predicate, schema)

            def ours(b: pa.RecordBatch = batch, f: RowFilter = chosen) -> object:
                return b.take(pa.array(f.matching(b)))

            def peer(b: pa.RecordBatch = batch, m: Mask = mask) -> object:
                return b.filter(m(b))

            repeats = REPEATS * ROWS // batch.num_rows
            pairs = interleaved(partial(_cpu_s, ours, repeats), partial(_cpu_s, peer, repeats))
            time_ratio = 1 / pairs.ratio
            rows.append(
                [
                    f"{name}, {batch.num_rows} rows",
                    f"{min(pairs.ours) * 1e3:.3f}",
                    f"{min(pairs.peer) * 1e3:.3f}",
                    f"{time_ratio:.2f}",
                    "" if time_ratio <= 1.3 else "above 1.3",
                ]
            )
    print_table("Filtering", ["condition", "ours ms", "pyarrow ms", "time ratio", ""], rows)


def _cpu_s(work: Callable[[], object], repeats: int) -> float:
    began = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - began) / repeats


if __name__ == "__main__":
    main()
