"""Measures the memory of one scan: a process connects, notes its memory, and reads a table once.

`python -m benchmarks._waist_memory URL TABLE OPTIONS [PAUSE]` prints one line of JSON. Batches are
dropped as they arrive, as by an engine that aggregates them, so only the reader's own
memory remains. A pause in seconds after each batch makes the reader slower than its sources.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from typing import Self

import fluss
from benchmarks._measure import resident_bytes

SAMPLED_EVERY_S = 0.002
MB = 1e6


class Peak:
    """The peak of the resident memory while it is sampled."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.mb = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.is_set():
            self.mb = max(self.mb, resident_bytes() / MB)
            time.sleep(SAMPLED_EVERY_S)


def main() -> None:
    """Read once; print the memory above that after connecting, and the largest batch."""
    url, name, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    pause_s = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    with fluss.connect(url) as session:
        table = session.table(name)
        gc.collect()
        level, rows, largest = resident_bytes() / MB, 0, 0
        with Peak() as peak:
            scan = table.scan(**options)
            for batch in scan.to_reader():
                rows += batch.num_rows
                largest = max(largest, batch.nbytes)
                time.sleep(pause_s)
        result = {
            "level_mb": level,
            "above_mb": peak.mb - level,
            "batch_mb": largest / MB,
            "splits": len(scan.splits()),
            "rows": rows,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
