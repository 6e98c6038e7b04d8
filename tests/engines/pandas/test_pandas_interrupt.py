"""Ctrl-C while no rows arrive: the read ends immediately, and the connection stays usable."""

import pyarrow as pa
import pytest

from tests.support.servers.stalled_wire import INTERRUPTED_S_MAX, StallingWire, interrupt

# A proxy stalls, and our own process is interrupted.
pytestmark = pytest.mark.one_server

SETUP = "import pandas as pd, fluss.pandas"
ROWS = 300_000


IN_CHUNKS = "[id for each in pd.read_fluss(TABLE, chunksize=1_000) for id in each['id']]"


@pytest.mark.slow  # starts a process, and waits until it waits
@pytest.mark.parametrize("reading", ["pd.read_fluss(TABLE)", IN_CHUNKS], ids=["whole", "chunks"])
def test_ctrl_c_ends_a_stalled_read_within_a_second(cluster, session, reading):
    rows = pa.table({"id": range(ROWS)})
    session.append("large", rows, create=True, buckets=2)
    with StallingWire(cluster.bootstrap) as wire:
        interrupted = interrupt(wire, session.table("large").name, reading, setup=SETUP)
    assert interrupted.after_s < INTERRUPTED_S_MAX
    assert interrupted.rows == ROWS
