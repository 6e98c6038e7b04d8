"""Tables with a lake: union reads beside their parts, deletes by key, and tiering.

`./dev bench lake [--rows N] [--tail N] [--deletes N] [--tiered N] [--pairs N] [--only ...]` prints

- deletes (`_lake_deletes`): how long the deletes of 1 million keys take on 10 million rows;
- unions (`_lake_unions`): for the core, Polars, DuckDB and pandas, a union of 10 million rows in
  Parquet and 1 million in the log, beside reading the two apart with the same engine;
- tiering (`_lake_tiering`): a log and a changelog of 2 million rows, copied by one process;
- spark (`_lake_spark`): the same rounds in Spark's executors, beside one process and beside Spark's
  own floor;
- freshness (`_lake_freshness`), only with `--only freshness [--minutes N]`: how far the lakes of
  two tables are behind, while 20 000 rows a second are written to them.

A real Fluss runs during all but the first. Processor time is that of this process, and of Spark's:
the server's is not in it. Machines are shared, so it is the figure to compare.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    _lake_deletes,
    _lake_freshness,
    _lake_spark,
    _lake_tiering,
    _lake_unions,
)
from benchmarks._measure import machine

ROWS, TAIL, DELETES, TIERED, PAIRS = 10_000_000, 1_000_000, 1_000_000, 2_000_000, 5
MINUTES = 10.0
SPARK_PAIRS_MAX = 3  # a pair of Spark takes as long as all others


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Tables with a lake.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--tail", type=int, default=TAIL)
    parser.add_argument("--deletes", type=int, default=DELETES)
    parser.add_argument("--tiered", type=int, default=TIERED)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--only", default=",".join(each for each in _PARTS if each != "freshness"))
    given = parser.parse_args()
    print(machine())
    for name in given.only.split(","):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="fluss-bench-") as folder:
            _PARTS[name](Path(folder), given)
        print(f"({name}: {time.perf_counter() - began:.0f} s in all)\n", flush=True)


_PARTS: dict[str, Callable[[Path, argparse.Namespace], None]] = {
    "deletes": lambda folder, given: _lake_deletes.measure(
        folder, rows=given.rows, deletes=given.deletes
    ),
    "unions": lambda folder, given: _lake_unions.measure(
        folder, rows=given.rows, tail=given.tail, pairs=given.pairs
    ),
    "tiering": lambda folder, given: _lake_tiering.measure(
        folder, rows=given.tiered, changes=given.tiered, pairs=given.pairs
    ),
    "spark": lambda folder, given: _lake_spark.measure(
        folder, rows=given.tiered, pairs=min(given.pairs, SPARK_PAIRS_MAX)
    ),
    "freshness": lambda folder, given: _lake_freshness.measure(folder, minutes=given.minutes),
}

if __name__ == "__main__":
    main()
