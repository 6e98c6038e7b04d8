"""What pyfluss 1.0.0 can do with the embedded server that Fluss 0.9.1 has not: filters.

pyfluss leaves the choice of rows to whoever asks; its filters choose batches, on the server. So it
gets whole batches, all that have a wanted row and, where statistics can tell, no others. Ours
gets the rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fluss_server import LocalCluster
from tests.compat.test_programs import run
from tools.peer import PeerUnavailableError, peer_python

PROGRAM = Path(__file__).parent / "embedded" / "filters.py"
ROWS, BATCH = 60, 5
# Statistics say nothing about these, so that every batch comes.
TELL_NOTHING = {"!=", "not in", "ends", "contains"}


def said(python: str, module: str, bootstrap: str) -> dict[str, list[int]]:
    lines = (line.split(":") for line in run(PROGRAM, python, module, bootstrap))
    return {name: [int(each) for each in ids.split()] for name, ids in lines}


def test_filters_of_pyfluss_choose_the_batches_that_have_wanted_rows():
    try:
        peer = str(peer_python())
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    with LocalCluster() as cluster:
        theirs = said(peer, "fluss", cluster.bootstrap_servers)
        ours = said(sys.executable, "fluss.aio", cluster.bootstrap_servers)
    assert list(theirs) == list(ours)
    assert ours["="] == [13]
    assert ours["nothing"] == []
    for name, wanted in ours.items():
        batches = sorted({each // BATCH for each in wanted})
        if name in TELL_NOTHING:
            batches = range(ROWS // BATCH)
        whole = [each * BATCH + row for each in batches for row in range(BATCH)]
        assert theirs[name] == whole, name
