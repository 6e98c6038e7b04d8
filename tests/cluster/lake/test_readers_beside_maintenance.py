"""Union reads beside writes, rounds of tiering, compaction and expiry, all at the same time.

Whatever the lake is at the moment, a read is one state: no older than what was acknowledged before
it began, and with each row once. A snapshot that expires while it is read is an error of its own.
"""

import threading
import time
from collections import Counter

import pytest

from fluss.errors import FlussError
from fluss_lake.lake_errors import LakeConflictError
from fluss_lake.tiering.lake_maintenance import compact, expire
from fluss_lake.tiering.round_driver import RoundOptions
from tests.cluster.lake.conftest import LAKE
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake.readers import by_batches, by_duckdb, by_polars
from tests.support.lake.rounds import one_round

# It goes on until each kind of work was done at least once.
SECONDS = 30.0 if IS_EXHAUSTIVE else 1.5
SECONDS_MAX = 60.0
COUNTED = ("rounds", "expired snapshots", "reads")
KEYS = 50
ROWS = 20
READERS = (by_batches, by_polars, by_duckdb)
LATER_MS = 60_000


class Beside:
    """Threads that work on a table until the time is over; the first failure is raised."""

    def __init__(self, table):
        self.table, self.acknowledged, self.begun = table, 0, 0
        self.counts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._failures: list[BaseException] = []

    def run(self, *works):
        threads = [threading.Thread(target=self._repeat, args=(each,)) for each in works]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if self._failures:
            raise self._failures[0]

    def _repeat(self, work):
        try:
            while not self._is_over() and not self._failures:
                work()
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self._failures.append(error)

    def _is_over(self):
        least = SECONDS if all(self.counts[each] for each in COUNTED) else SECONDS_MAX
        return time.monotonic() - self._began >= least

    def write(self):
        self.begun += 1
        if self.table.primary_key:
            self.table.upsert({"id": list(range(KEYS)), "n": [self.begun] * KEYS})
        else:
            first = (self.begun - 1) * ROWS
            self.table.append({"id": list(range(first, first + ROWS)), "n": [self.begun] * ROWS})
        self.acknowledged = self.begun
        self.counts["writes"] += 1
        time.sleep(0.01)

    def tier(self):
        try:
            one_round(self.table)
        except LakeConflictError:
            self.counts["rounds that met a compaction"] += 1
        else:
            self.counts["rounds"] += 1

    def compact(self):
        try:
            compact(self.table.__fluss_table__(), RoundOptions())
        except LakeConflictError:
            self.counts["compactions that met a round"] += 1
        else:
            self.counts["compactions"] += 1
        time.sleep(0.05)

    def expire(self):
        before_ms = time.time_ns() // 1_000_000 + LATER_MS
        try:
            done = expire(self.table.__fluss_table__(), RoundOptions(), before_ms=before_ms)
        except LakeConflictError:
            self.counts["expiries that met a round"] += 1
        else:
            self.counts["expired snapshots"] += done.snapshots
        time.sleep(0.05)

    def reading(self, reader, session):
        def read():
            least = self.acknowledged
            try:
                found = reader(self.table, session)
            except FlussError as error:
                assert "expired" in str(error), error  # noqa: PT017
                self.counts["reads of an expired snapshot"] += 1
                return
            self.check(found.to_pydict(), least, self.begun)
            self.counts["reads"] += 1

        return read

    def check(self, found, least, most):
        if self.table.primary_key:
            versions = set(found["n"])
            assert len(versions) <= 1, versions
            assert sorted(found["id"]) == list(range(KEYS if versions else 0))
            assert least <= max(versions, default=0) <= most
            return
        rows = len(found["id"])
        assert sorted(found["id"]) == list(range(rows))
        assert least * ROWS <= rows <= most * ROWS


@pytest.mark.slow  # works for some seconds
@pytest.mark.parametrize("kind", ["log", "keys"])
def test_reads_are_states_whatever_happens_to_the_lake(session, kind):
    how = {"primary_key": "id"} if kind == "keys" else {}
    columns = {"id": "BIGINT", "n": "BIGINT"}
    table = session.create_table(f"beside_{kind}", columns, properties=LAKE, buckets=1, **how)
    beside = Beside(table)
    beside.write()
    beside.tier()
    readers = [beside.reading(each, session) for each in READERS]
    beside.run(beside.write, beside.tier, beside.compact, beside.expire, *readers)
    for each in READERS:
        beside.reading(each, session)()
    assert min(beside.counts[each] for each in COUNTED) > 0
