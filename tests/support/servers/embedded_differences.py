"""Where the embedded server answers otherwise than Fluss 0.9.1, test by test, each with its reason.

Tests named here are expected to fail on it, and a test that passes nevertheless is told. Everything
that runs on a cluster and is not here passes on both. One difference fails no test: the server
makes no snapshots of rows by key, since there is no other server to take them over. It says "none
yet" as Fluss does before its first one, and refuses where the log alone would not give all rows
any more (tests/cluster/server/test_kv_snapshots.py); Fluss makes one after ten minutes.
"""

from __future__ import annotations

# By the end of a test's id, without its parameters.
DIFFERENCES: dict[str, str] = {
    "log/test_log_scan.py::test_a_batch_of_an_unknown_schema_is_named": (
        "a batch whose schema id is none of the table's is refused when it is written (error 9); "
        "0.9.1 takes it, and every reader of the table fails from then on"
    ),
    "state/test_state_at_offset.py::test_a_strategy_that_the_servers_do_not_have_is_refused": (
        "it has SCAN_KV, which 0.9.1 has not"
    ),
    "test_programs.py::test_the_differences_are_those_that_are_meant": (
        "metadata of a missing table is answered with error 7 and a sentence; 0.9.1 answers -1 with "
        "a Java stack trace"
    ),
}


def difference(nodeid: str) -> str | None:
    """Why a test cannot pass on the embedded server, None where it must."""
    plain = nodeid.partition("[")[0]
    for name, reason in DIFFERENCES.items():
        if plain.endswith(name):
            return reason
    return None
