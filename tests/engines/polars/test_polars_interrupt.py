"""Ctrl-C while no rows arrive: the query ends immediately, and the connection stays usable."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from tests.support.servers.stalled_wire import INTERRUPTED_S_MAX, StallingWire, interrupt

# A proxy stalls, and our own process is interrupted.
pytestmark = pytest.mark.one_server

ROWS = 60_000
# A plan looks at one batch of each bucket. Small ones get through the stall, and the rows do not;
# of large ones not even the plan does.
ROWS_PER_BATCH = {"rows": 2_000, "plan": 20_000}
# Polars raises KeyboardInterrupt, and Python's own handler may once more, a moment later, wherever
# the program is then; so it listens no more after the first.
SETUP = """
import signal, polars as pl, fluss_polars
sys.unraisablehook = lambda _: None
def ended(query):
    try:
        return query()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise
"""
READINGS = {
    "streaming": "pl.scan_fluss(TABLE).collect(engine='streaming')",
    "in order": "pl.scan_fluss(TABLE, order='bucket').collect()",
    "grouped": "pl.scan_fluss(TABLE).group_by('id').len().collect()",
    "read": "pl.read_fluss(TABLE)",
    "written": "range(pl.scan_fluss(TABLE).fluss.append(TABLE.replace('large', 'copy')).rows)",
}
UNINTERRUPTED = pytest.param(
    "pl.scan_fluss(TABLE).collect(engine='in-memory')",
    marks=pytest.mark.skip(
        reason="this engine of Polars looks for Ctrl-C only when all its sources have ended"
    ),
    id="in memory",
)


@pytest.fixture(params=ROWS_PER_BATCH)
def large(session, request):
    """Numbers that do not compress, so that it is known how large an answer is."""
    table = session.create_table("large", pa.schema([("id", pa.int64())]), buckets=2)
    numbers = np.random.default_rng(11).integers(0, 2**62, ROWS)
    count = ROWS_PER_BATCH[request.param]
    for start in range(0, ROWS, count):
        table.append(pa.table({"id": numbers[start : start + count]}))
    session.create_table("copy", pa.schema([("id", pa.int64())]), buckets=2)
    return table.name


@pytest.mark.slow  # starts a process, and waits until it waits
@pytest.mark.parametrize(
    "reading",
    [*(pytest.param(each, id=name) for name, each in READINGS.items()), UNINTERRUPTED],
)
def test_ctrl_c_ends_a_stalled_query_within_a_second(cluster, large, reading):
    with StallingWire(cluster.bootstrap) as wire:
        interrupted = interrupt(wire, large, f"ended(lambda: {reading})", setup=SETUP)
    assert interrupted.after_s < INTERRUPTED_S_MAX
    assert interrupted.rows == ROWS


ABANDONED = """
import time, polars as pl, fluss_polars
query = pl.scan_fluss({table!r}).collect(background=True)
time.sleep({wait_s})
"""


# Polars plans a query of the background in the foreground, so only its rows can be missing.
@pytest.mark.slow  # starts a process
@pytest.mark.parametrize("large", ["rows"], indirect=True)
@pytest.mark.parametrize("wait_s", [0.1, 1.0])
def test_a_process_with_a_stalled_query_in_the_background_ends_quietly(cluster, large, wait_s):
    with StallingWire(cluster.bootstrap) as wire:
        wire.stall()
        program = ABANDONED.format(table=f"fluss://{wire.bootstrap}/{large}", wait_s=wait_s)
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, timeout=30, check=False
        )
        wire.flow()
    assert (done.returncode, done.stderr) == (0, b"")
