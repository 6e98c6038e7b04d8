"""The long proofs: `./dev prove [NAME ...]`, each with its full counts, written to docs/proofs.

A proof is a run of tests with more cases than a change should wait for. Its page records the claim,
the date, versions and command, and the last lines of the output. It is committed, so that a claim
in the documentation can be traced to a run. A proof that fails writes nothing.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "proofs"
VERSIONS_OF = ("pyarrow", "numpy", "protobuf", "crc32c", "hypothesis", "pytest")
CLOSING_LINE = re.compile(
    r"\d+ passed|oracle: |kills: |failover: |lake: |objects: |import: |export: |differences"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One claim, and the tests that show it."""

    name: str
    claim: str
    tests: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    # More workers than cores for tests that mostly wait for servers.
    workers: int = 2
    # Whether the page includes counts that the tests print on the standard error.
    counts: bool = False

    @property
    def command(self) -> list[str]:
        """The command of the run."""
        options = ["-n", str(self.workers), "-q", "--timeout", "3600"]
        if self.counts:
            options.append("-rP")
        return [sys.executable, "-m", "pytest", *options, *self.tests]


PROOFS = (
    Proof(
        name="oracle",
        claim="Keys, hashes, texts of partitions, rows, batches and JSON have exactly the bytes "
        "that the Java classes of Fluss 0.9.1 write, and are read from them without a "
        "difference.",
        tests=("tests/java/oracle", "tests/java/golden"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="codecs",
        claim="Every codec reads what it has written, by columns and row by row, and refuses "
        "damaged bytes without a crash, a hang or unbounded memory.",
        tests=("tests/unit/model", "tests/unit/wire", "tests/unit/rows", "tests/unit/records"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
    ),
    Proof(
        name="filters",
        claim="Filters on a real server return exactly the rows that SQL selects, whatever "
        "partitions, buckets and batches they skip: 25 random filters on each of 40 logs "
        "and 40 states with random columns, 2 000 in all, are compared with the unfiltered "
        "rows and a model of SQL in plain Python.",
        tests=("tests/proofs/test_filters.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="state",
        claim="10 000 random upserts, deletes and partial updates are written to 2 partitions of "
        "4 buckets, while two columns are added. The state at 50 times and at 50 offsets "
        "equals that of a dict, computed by changelog, LIMIT_SCAN and KV snapshot, and, for"
        " 10 000 changes of a scripted server, by SCAN_KV.",
        tests=("tests/proofs/test_state.py", "tests/cluster/state/test_kv_scan.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="lake",
        claim="Fluss's own tiering job copies log tables and primary-key tables into Iceberg "
        "while they are written, partitioned and not, with all types. After each of four "
        "rounds, and after further writes, a scan of lake and log returns the rows that "
        "Fluss has. Five rounds of the job and five of ours alternate, and each continues "
        "where the other ended. "
        "After each of eight of our rounds of seven kinds of tables, Iceberg-Java's generic reader and "
        "Fluss's lake source give the rows of the server, with their buckets, offsets and times, on "
        "Fluss 0.9.1 and on the embedded server. Random histories of five merge engines, with both "
        "ways of replacing rows and with restarts, are the server's state at every moment in Polars, DuckDB, "
        "pandas and Spark. Workers, Spark's executors and its driver are killed at each step of a round, "
        "workers sleep for three minutes, and a disk is full: no row is lost, and none is there twice. "
        "Polars' decoder returns the same values of Flink's files as pyarrow. Each read beside writes, "
        "rounds, compactions and expiries is one state.",
        tests=(
            "tests/proofs/test_lake_with_flink.py",
            "tests/cluster/lake/test_java_judges.py",
            "tests/cluster/lake/test_tiering_histories.py",
            "tests/cluster/lake/test_tiering_kills.py",
            "tests/cluster/lake/test_sleeping_workers.py",
            "tests/cluster/lake/test_full_disk.py",
            "tests/cluster/lake/test_readers_beside_maintenance.py",
            "tests/cluster/lake/test_retention.py",
            "tests/engines/spark/test_lake_histories.py",
            "tests/engines/spark/test_tiering_kills.py",
        ),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        counts=True,
    ),
    Proof(
        name="whole",
        claim="The features of Fluss 1.0 work together: each method of Java's client 1.0.0 is "
        "called on the embedded server and on a real 0.9.1, and the responses are the "
        "recorded ones; Java and this client read each other's rows in partitions with "
        "different bucket counts; rows expire, rows of expired partitions are read from the"
        " partition of history, clusters are administered, and remote segments and KV "
        "snapshots are read from S3.",
        tests=(
            "tests/cluster/server/test_every_method.py",
            "tests/cluster/server/test_java_1_0.py",
            "tests/cluster/scan/test_rescaled_tables.py",
            "tests/cluster/server/test_rescaled_directories.py",
            "tests/cluster/server/test_expiring_rows.py",
            "tests/cluster/lookup/test_historical_lookups.py",
            "tests/cluster/write/test_historical_writes.py",
            "tests/cluster/admin",
            "tests/cluster/objects",
        ),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="s3",
        claim="Log segments of Fluss 0.9.1 in S3 are read for longer than the tokens are valid: "
        "tokens are renewed before they expire, and replaced if the store refuses them "
        "earlier, and no row is lost or duplicated. 60 scans of random ranges are complete "
        "although every seventh read fails, and reading a table lets the memory grow by less "
        "than 200 MB.",
        tests=("tests/proofs/test_object_storage.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        workers=1,
        counts=True,
    ),
    Proof(
        name="jobs",
        claim="A plan that is read 10 times while a writer writes 1 000 rows a second returns the"
        " same rows each time. A job with a cursor that crashes at 60 of its steps delivers"
        " every row once. Replaying a changelog of 5 million changes into an empty table "
        "gives its source, with less than 48 MB of memory growth.",
        tests=("tests/proofs/test_repeatable_state.py", "tests/proofs/test_jobs.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="servers",
        claim="Fluss 0.9.1 and the embedded server respond alike to 20 000 random requests on "
        "twenty kinds of tables (logs, keys, merge engines, delete behaviours, changelog "
        "images, partitions, auto-increment): DDL, whole and partial writes, duplicates and"
        " gaps, lookups and scans. Compared are rows, offsets, changes and error codes, "
        "while the embedded server is killed or stopped, and started again, 200 times.",
        tests=("tests/proofs/test_differential.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        workers=5,
    ),
    Proof(
        name="crashes",
        claim="After each of 200 kills (-9) of the embedded server under load, 100 with "
        "durability `process` and 100 with `disk`, every acknowledged batch of logs and of "
        "primary-key tables is there exactly once and complete, and the rows by key are "
        "those of the replayed changelog. After each of 120 kills while databases, tables, "
        "columns, partitions and segments are created and removed, everything that was "
        "acknowledged is there, and no start mistakes the traces of a kill for damage.",
        tests=("tests/proofs/test_crashes.py", "tests/cluster/server/test_catalog_crashes.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
        workers=5,
    ),
    Proof(
        name="damage",
        claim="One file or directory of a server that was killed or stopped is damaged: a bit is "
        "flipped, or bytes are zeroed, cut, deleted, duplicated, exchanged, or replaced by "
        "those of an earlier state or of another directory. This is done to the catalog, "
        "ledger, manifests, segments, indexes, snapshots, checkpoints, rows by key and "
        "directories. The next server serves exactly the acknowledged rows, or refuses and "
        "names the file. 3 120 random damages of six directories with logs, keys, "
        "partitions, altered schemas and trimmed logs were tried, and 200 repairs, which "
        "never serve a row that was not written there.",
        tests=("tests/cluster/server/test_damage.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
        counts=True,
    ),
    Proof(
        name="failover",
        claim="Each of three tablet servers of a replicated Fluss 0.9.1 is killed (-9), stopped "
        "(SIGSTOP, SIGCONT) and ended (SIGTERM) in turn, three times, while a log and a "
        "primary-key table are written, scanned, followed and looked up, and new sessions "
        "are opened. No call fails before its operation-timeout, and none takes longer. In "
        "the end nothing is lost, duplicated or reordered, the followed rows are the "
        "written ones, and the changelog gives the state.",
        tests=("tests/cluster/test_failover.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        counts=True,
    ),
    Proof(
        name="duckdb",
        claim="A thousand random queries (filters, projections, limits, groups, joins) over Fluss"
        " tables have the same results in DuckDB as over the same rows in memory.",
        tests=("tests/proofs/test_duckdb_queries.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="polars",
        claim="1 000 random queries of Polars (filters, columns, limits, groups, joins) over a "
        "partitioned log, a state and a second table on a real server have the same results"
        " as over the same rows in memory, in its streaming and its in-memory engine.",
        tests=("tests/proofs/test_polars_queries.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="import",
        claim="`fluss import` writes 5 GB of Parquet files into a log while it is killed (-9) six "
        "times at random moments, and the same command continues each time; `fluss export` writes "
        "them back to Parquet. Every row is there exactly once and unchanged, in the table and in "
        "the file, and no process takes more than 1 GB of memory.",
        tests=("tests/proofs/test_import.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
        counts=True,
    ),
    Proof(
        name="spark",
        claim="A worker of Spark, its driver or the leader of a replicated bucket is killed forty"
        " times while files are streamed into a log and into a primary-key table. Drivers "
        "hang and resume, and workers continue to write after others have taken over. The "
        "same is done forty times on one server and forty times on three, with processes in"
        " place of Spark's tasks, which are killed at each of their batches. In the end "
        "both tables hold every row once; a log that was written without exactly once has "
        "duplicates.",
        tests=("tests/proofs/test_spark_kills.py", "tests/proofs/test_exactly_once_kills.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        counts=True,
    ),
    Proof(
        name="pipeline",
        claim="The pipeline of the examples is killed at each of its steps and started again, "
        "with a lake and without. Every table, its rows in the lake, and the Parquet files "
        "equal a plain computation, also if the logs expire as soon as the lake has their "
        "rows. Spark reads, writes and streams over Spark Connect, on a cluster whose "
        "workers are sent our packages, with Java from pip, and in a declarative pipeline.",
        tests=("tests/examples/test_pipeline.py", "tests/engines/spark/test_elsewhere.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
    ),
    Proof(
        name="packages",
        claim="Each package is installed alone into an empty environment and works there, with "
        "the newest and with the lowest versions of its dependencies, on every Python from "
        "3.11 to 3.13 of the machine. The README of a fresh clone works from top to bottom,"
        " with Spark.",
        tests=("tests/packaging",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
    ),
)


def main(names: Sequence[str]) -> int:
    """Run the proofs of these names, or all."""
    known = {proof.name: proof for proof in PROOFS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"There is no proof {unknown[0]!r}; there are: {', '.join(known)}.")
        return 2
    failed = [name for name in names or known if not prove(known[name])]
    return 1 if failed else 0


def prove(proof: Proof) -> bool:
    """Run one proof and write its page."""
    print(f"prove: {proof.name}: {proof.claim}", flush=True)
    began = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        proof.command,
        cwd=ROOT,
        env=os.environ | proof.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        for line in run.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if run.returncode != 0:
        print(f"prove: {proof.name} FAILED; its page is left as it was.")
        return False
    PAGES.mkdir(parents=True, exist_ok=True)
    page = PAGES / f"{proof.name}.md"
    page.write_text(_page(proof, lines, minutes=(time.monotonic() - began) / 60))
    print(f"prove: written to {page.relative_to(ROOT)}")
    return True


def _page(proof: Proof, lines: Sequence[str], *, minutes: float) -> str:
    closing = [line for line in lines if CLOSING_LINE.search(line)]
    versions = ", ".join(f"{each} {importlib.metadata.version(each)}" for each in VERSIONS_OF)
    settings = " ".join(f"{key}={value}" for key, value in proof.environment.items())
    command = " ".join(["pytest", *proof.command[3:]])
    return "\n".join(
        [
            f"# Proof: {proof.name}",
            "",
            proof.claim,
            "",
            f"- when: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {minutes:.0f} minutes",
            f"- commit: {_commit()}",
            f"- with: Python {platform.python_version()}, {versions}",
            f"- by: `./dev prove {proof.name}`, which runs `{settings} {command}`",
            "",
            "```",
            *closing,
            "```",
            "",
        ]
    )


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "not a git checkout"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
