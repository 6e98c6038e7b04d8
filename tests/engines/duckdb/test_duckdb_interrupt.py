"""Ctrl-C while no rows arrive: the query ends immediately, and the connection stays usable."""

import pyarrow as pa
import pytest

import fluss
from tests.support.servers.stalled_wire import INTERRUPTED_S_MAX, StallingWire, interrupt

# A proxy stalls, and our own process is interrupted.
pytestmark = pytest.mark.one_server

ROWS = 300_000
SETUP = """
import duckdb, fluss_duckdb
con = fluss_duckdb.connect()
fluss_duckdb.install()
"""
READINGS = {
    "execute": "con.execute(f\"FROM fluss('{TABLE}')\").fetchall()",
    "relation": "con.sql(f\"FROM fluss('{TABLE}')\").to_arrow_table()",
    "join": "con.sql(f\"SELECT * FROM fluss('{TABLE}') JOIN fluss('{TABLE}') b USING (id)\""
    ").fetchall()",
    "stream": "[row for batch in con.sql(f\"FROM fluss('{TABLE}')\").to_arrow_reader(1_000)"
    " for row in batch['id']]",
    "installed": "duckdb.sql(f\"FROM fluss('{TABLE}')\").fetchall()",
}


@pytest.fixture(scope="module")
def large(cluster, shared):
    """The name of a table whose rows do not fit into one small answer."""
    path = f"{shared}.large"
    with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
        session.append(path, pa.table({"id": range(ROWS)}), create=True, buckets=2)
    return path


@pytest.mark.slow  # starts a process, and waits until it waits
@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_ctrl_c_ends_a_stalled_query_within_a_second(cluster, large, reading):
    with StallingWire(cluster.bootstrap) as wire:
        interrupted = interrupt(wire, large, reading, setup=SETUP)
    assert interrupted.after_s < INTERRUPTED_S_MAX
    assert interrupted.rows == ROWS
