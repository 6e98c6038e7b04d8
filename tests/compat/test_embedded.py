"""Other clients on the embedded server: filters of pyfluss 1.0.0, and a program of Java 0.9.1.

The other programs for pyfluss are in `test_programs`, which runs on both servers; filters are not
among them, because Fluss 0.9.1 has none. The filters
of pyfluss choose batches on the server, and its caller filters the rows: it gets all batches with a
matching row and, where statistics suffice, no others. Ours gets the rows. The Java program prints
the same lines as on Fluss itself.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fluss_server import LocalCluster
from tests.compat.test_programs import run
from tests.support.servers.java_client import run_shop
from tools.peer import PeerUnavailableError, peer_python

PROGRAM = Path(__file__).parent / "embedded" / "filters.py"
ROWS, BATCH = 60, 5
# Statistics cannot decide these filters, so every batch is sent.
TELL_NOTHING = {"!=", "not_equal", "not in", "not in nothing", "ends", "contains"}


def results_of(python: str, module: str, bootstrap: str) -> dict[str, list[int]]:
    lines = (line.split(":") for line in run(PROGRAM, python, module, bootstrap))
    return {name: [int(each) for each in ids.split()] for name, ids in lines}


def test_filters_of_pyfluss_choose_the_batches_with_matching_rows():
    try:
        peer = str(peer_python())
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    with LocalCluster() as cluster, ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(results_of, python, module, cluster.bootstrap_servers)
            for python, module in ((peer, "fluss"), (sys.executable, "fluss.aio"))
        ]
        theirs, ours = (each.result() for each in runs)
    assert list(theirs) == list(ours)
    assert ours["="] == [13]
    assert ours["nothing"] == []
    for name, expected in ours.items():
        batches = sorted({each // BATCH for each in expected})
        if name in TELL_NOTHING:
            batches = range(ROWS // BATCH)
        whole = [each * BATCH + row for each in batches for row in range(BATCH)]
        assert theirs[name] == whole, name


DAY_OF_JAVA = """\
tables [events, stock, visits]
read {+A=1000} to 999 with 2 columns
read {+A=1000} to 999 with 1 columns
read {+I=100, +U=2, -D=1, -U=2} to 104 with 2 columns
row 6 first
row 7 second
absent
row 9 third
row 10 first
row 0 first
row 1 first
row 2 first
row 2 guest
partitions 1
tables []
"""


@pytest.mark.usefixtures("java")
def test_the_java_client_creates_writes_reads_and_looks_up():
    with LocalCluster() as cluster:
        assert run_shop(cluster.bootstrap_servers, "shop") == DAY_OF_JAVA.splitlines()
