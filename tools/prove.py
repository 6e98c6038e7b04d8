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
        claim="Keys, hashes, partition texts, rows, batches and JSON are byte for byte what the "
        "Java classes of Fluss 0.9.1 make and read.",
        tests=("tests/java/oracle", "tests/java/golden"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="codecs",
        claim="Every codec reads back what it wrote, by columns and row by row alike, and refuses "
        "damaged bytes without a crash, a hang or unbounded memory.",
        tests=("tests/unit/model", "tests/unit/wire", "tests/unit/rows", "tests/unit/records"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
    ),
    Proof(
        name="filters",
        claim="Whatever a filter spares on a real server, the rows are those that SQL wants: 25 "
        "random filters on each of 40 logs and 40 states of random columns, 2 000 in all, against "
        "the same rows unfiltered and a model of SQL in plain Python.",
        tests=("tests/proofs/test_filters.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="state",
        claim="After 10 000 random upserts, deletes and partial updates over 2 partitions of 4 "
        "buckets, with two columns added in between, the state at 50 moments and at 50 offsets is "
        "that of a dict, by changelog, LIMIT_SCAN and KV snapshot; by SCAN_KV the same for 10 000 "
        "changes of a scripted server.",
        tests=("tests/proofs/test_state.py", "tests/cluster/state/test_kv_scan.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="lake",
        claim="Logs and tables with primary keys, partitioned and not, with all types, that Fluss's own "
        "tiering job copies into Iceberg while they are written to, are read as one table: after "
        "each of four rounds, and after further writes, lake and log give the rows that Fluss has. "
        "Five rounds of the job and five of ours, in turns, go on where the other ended.",
        tests=("tests/proofs/test_lake_with_flink.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        counts=True,
    ),
    Proof(
        name="whole",
        claim="What Fluss 1.0 added, whole: each method of Java's client 1.0.0 is called on the embedded server "
        "and on a real 0.9.1 and answered as recorded beside Fluss's main line; Java and this client "
        "read each other's rows in partitions of different bucket counts; rows expire, expired "
        "partitions are history, clusters are administered, and remote segments and KV snapshots are "
        "read from S3.",
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
        claim="Log segments of Fluss 0.9.1 in S3 are read for longer than tokens last: renewed before "
        "they expire, and replaced where the store refuses them earlier, without a row lost or "
        "doubled. 60 scans of random ranges are whole although every seventh read fails, and "
        "a table is read with less than 200 MB of growth.",
        tests=("tests/proofs/test_object_storage.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        workers=1,
        counts=True,
    ),
    Proof(
        name="jobs",
        claim="A plan read again under a writer of 1 000 rows a second gives the same rows, 10 "
        "times over; a job with a cursor that crashes at 60 of its steps delivers every row once; "
        "a changelog of 5 million changes replayed into an empty table gives its source, with "
        "less than 48 MB of growth on the way.",
        tests=("tests/proofs/test_repeatable_state.py", "tests/proofs/test_jobs.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="servers",
        claim="20 000 random requests, made by hand, on twenty kinds of tables (logs, keys, merge "
        "engines, delete behaviours, changelog images, partitions, auto-increment) are answered "
        "alike by Fluss 0.9.1 and by the embedded server: DDL, whole and partial writes, "
        "duplicates and gaps, lookups, scans; rows, offsets, changes, error codes; with the "
        "embedded server killed, or stopped, and started again 200 times in between.",
        tests=("tests/proofs/test_differential.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        workers=5,
    ),
    Proof(
        name="crashes",
        claim="After each of 200 kills (-9) of the embedded server under load, 100 with durability "
        "`process` and 100 with `disk`, every acknowledged batch of logs and of primary keys is "
        "there exactly once and whole, and the rows by key are those of the replayed changelog. "
        "After each of 120 kills while databases, tables, columns, partitions and segments come "
        "and go, what was acknowledged is there, and no start takes what a kill leaves for damage.",
        tests=("tests/proofs/test_crashes.py", "tests/cluster/server/test_catalog_crashes.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
        workers=5,
    ),
    Proof(
        name="damage",
        claim="Whatever is done to one file or directory of a server that was killed or ended "
        "cleanly (a bit flipped, bytes zeroed, cut, deleted, duplicated, exchanged, replaced by an "
        "earlier state or by that of another directory: catalog, ledger, manifests, segments, "
        "indexes, snapshots, checkpoints, rows by key, directories): "
        "the next server serves exactly what was acknowledged, or refuses and names the file. "
        "3 120 random damages of six directories with logs, keys, partitions, altered schemas and "
        "trimmed logs, and 200 repairs, which never serve a row that was not written there.",
        tests=("tests/cluster/server/test_damage.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
        counts=True,
    ),
    Proof(
        name="failover",
        claim="Each of three tablet servers of a replicated Fluss 0.9.1 is killed (-9), stopped "
        "(SIGSTOP, SIGCONT) and ended (SIGTERM) in turn, three times over, while a log and a table "
        "with a primary key are written, scanned, followed and looked up and new sessions are "
        "opened. No call fails that had time left, and none takes longer than its "
        "operation-timeout; in the end nothing is lost, doubled or reordered, what was followed is "
        "what was written, and the changelog leads to the state.",
        tests=("tests/cluster/test_failover.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        counts=True,
    ),
    Proof(
        name="duckdb",
        claim="A thousand random queries (filters, projections, limits, groups, joins) over tables "
        "of Fluss answer in DuckDB as over the same rows in its memory.",
        tests=("tests/proofs/test_duckdb_queries.py",),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
    ),
    Proof(
        name="polars",
        claim="1 000 random queries of Polars (filters, columns, limits, groups, joins) over a "
        "partitioned log, a state and a second table on a real server give what they give on the "
        "same rows in memory, in its streaming and its in-memory engine.",
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
        claim="Forty times a worker of Spark, its driver or the leader of a replicated bucket is "
        "killed while files are streamed into a log and into a primary-key table; drivers hang and "
        "resume, workers continue to write when others have taken over. So it is forty times on "
        "one server and forty on three with processes in the place of Spark's tasks, killed at "
        "each of their batches. In the end both tables hold every row once; a log beside them, "
        "with exactly once switched off, has duplicates.",
        tests=("tests/proofs/test_spark_kills.py", "tests/proofs/test_exactly_once_kills.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive", "FLUSS_TEST_REQUIRE_REAL": "1"},
        counts=True,
    ),
    Proof(
        name="pipeline",
        claim="The pipeline of the examples is killed at each of its steps and started again, with a lake "
        "and without: every table, the lake's part of it, and the Parquet files equal a plain "
        "computation, also when the logs expire as soon as the lake has them. Spark reads, writes and streams by "
        "Spark Connect, on a cluster whose workers are sent all of ours, with Java from pip, and "
        "as a declared pipeline.",
        tests=("tests/examples/test_pipeline.py", "tests/engines/spark/test_elsewhere.py"),
        environment={"FLUSS_TEST_PROFILE": "exhaustive"},
    ),
    Proof(
        name="packages",
        claim="Each package alone in an empty environment does what it is for, with the newest and "
        "with the lowest versions of what it needs, on every Python from 3.11 to 3.13 of the machine; "
        "and the README of a fresh clone works from top to bottom, with Spark.",
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
