"""The same random operations on the real server and on the embedded one, answered alike.

Every operation waits for its answer, so that both servers have the same history; what they are
asked for is compared as it comes (rows, offsets, changes, error codes), and at the end the whole
changelog and state of every table.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import fluss
from fluss.errors import FlussError
from fluss.model.aggregation import AggFunction
from fluss.model.column import Column
from fluss.model.data_types import DataTypes
from fluss.model.schema import Schema
from fluss.model.table import TableDescriptor
from fluss.session.session import Session
from fluss.session.table import Table
from fluss_server.local import LocalCluster
from tests.support.profiles import IS_EXHAUSTIVE

KEYS = 12
SEEDS, OPERATIONS = (20, 1_000) if IS_EXHAUSTIVE else (2, 120)
DAYS = ("2026-01-01", "2026-01-02")

PLAIN = (
    Column("id", DataTypes.int().not_null()),
    Column("name", DataTypes.string()),
    Column("n", DataTypes.bigint()),
)
AGGREGATED = (
    PLAIN[0],
    Column("name", DataTypes.string(), aggregation=AggFunction.of("listagg", delimiter="|")),
    Column("n", DataTypes.bigint(), aggregation=AggFunction.of("sum")),
)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of table."""

    name: str
    columns: tuple[Column, ...] = PLAIN
    keys: tuple[str, ...] = ("id",)
    partition_by: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()


KINDS = (
    Kind(name="log", keys=()),
    Kind(name="log_none", keys=(), properties=(("table.log.arrow.compression.type", "NONE"),)),
    Kind(name="keyed"),
    Kind(name="indexed", properties=(("table.kv.format", "INDEXED"),)),
    Kind(name="wal", properties=(("table.changelog.image", "wal"),)),
    Kind(name="first_row", properties=(("table.merge-engine", "first_row"),)),
    Kind(
        name="versioned",
        properties=(
            ("table.merge-engine", "versioned"),
            ("table.merge-engine.versioned.ver-column", "n"),
        ),
    ),
    Kind(
        name="aggregated",
        columns=AGGREGATED,
        properties=(("table.merge-engine", "aggregation"),),
    ),
    Kind(name="no_deletes", properties=(("table.delete.behavior", "disable"),)),
    Kind(name="deletes_ignored", properties=(("table.delete.behavior", "ignore"),)),
    Kind(
        name="by_day",
        columns=(*PLAIN, Column("day", DataTypes.string().not_null())),
        keys=("id", "day"),
        partition_by=("day",),
    ),
)


@pytest.fixture(scope="module")
def embedded():
    with LocalCluster() as running, fluss.connect(running.url) as session:
        yield session


@pytest.fixture
def real(cluster):
    with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
        yield session


class Pair:
    """Both servers, asked the same."""

    def __init__(self, real: Session, embedded: Session, database: str) -> None:
        self.sessions = (real, embedded)
        self.database = database
        embedded.create_database(database)
        self.said: list[str] = []

    def ask(self, what: str, question: Callable[[Session], Any]) -> Any:
        """Ask both, and compare what they answer or how they refuse."""
        self.said.append(what)
        expected, found = (_outcome(question, each) for each in self.sessions)
        assert found == expected, f"{_difference(expected, found)}\nafter: {self.said[-5:]}"
        return expected

    def table(self, session: Session, kind: Kind) -> Table:
        return session.table(f"{self.database}.{kind.name}")


def _outcome(question: Callable[[Session], Any], session: Session) -> tuple[str, Any]:
    try:
        return "answer", question(session)
    except FlussError as error:
        return "refusal", error.error_code


def _difference(expected: tuple[str, Any], found: tuple[str, Any]) -> str:
    lists = [each[1] for each in (expected, found)]
    if not all(isinstance(each, list) for each in lists):
        return f"{found} instead of {expected}"
    counts = [Counter(map(repr, each)) for each in lists]
    missing, added = counts[0] - counts[1], counts[1] - counts[0]
    return f"missing {list(missing.items())[:5]}, instead {list(added.items())[:5]}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_servers_answer_alike(real, embedded, database, seed):
    pair = Pair(real, embedded, database)
    chance = random.Random(seed)
    for kind in KINDS:
        descriptor = TableDescriptor(
            Schema(kind.columns, primary_keys=list(kind.keys) or None),
            bucket_count=1,
            partition_keys=list(kind.partition_by) or None,
            properties=dict(kind.properties) or None,
        )
        pair.ask(f"create {kind.name}", lambda s, k=kind, d=descriptor: _create(s, pair, k, d))
    for _ in range(OPERATIONS):
        kind = chance.choice(KINDS)
        what, question = _operation(chance, pair, kind)
        pair.ask(f"{kind.name}: {what}", question)
    for kind in KINDS:
        mode = "changelog" if kind.keys else "log"
        pair.ask(f"{kind.name}: all", lambda s, k=kind, m=mode: _log(pair.table(s, k), m))
        if kind.keys:
            pair.ask(f"{kind.name}: state", lambda s, k=kind: _rows(pair.table(s, k).scan()))
    embedded.drop_database(database, cascade=True)


def _create(session: Session, pair: Pair, kind: Kind, descriptor: TableDescriptor) -> None:
    table = session.create_table(f"{pair.database}.{kind.name}", descriptor)
    for day in DAYS if kind.partition_by else ():
        table.create_partition({"day": day})


def _operation(
    chance: random.Random, pair: Pair, kind: Kind
) -> tuple[str, Callable[[Session], Any]]:
    rows = _random_rows(chance, kind)
    if not kind.keys:
        verbs = ["append", "append", "append", "log", "offsets", "lookup"]
    else:
        verbs = [
            "upsert",
            "upsert",
            "upsert",
            "delete",
            "update",
            "lookup",
            "log",
            "offsets",
            "limit",
        ]
    match chance.choice(verbs):
        case "append":
            return f"append {rows}", lambda s: _report(pair.table(s, kind).append(rows))
        case "upsert":
            return f"upsert {rows}", lambda s: _report(pair.table(s, kind).upsert(rows))
        case "delete":
            keys = rows.select(list(kind.keys))
            return f"delete {keys}", lambda s: _report(pair.table(s, kind).delete(keys))
        case "update":
            some = rows.select([*kind.keys, chance.choice(["name", "n"])])
            return f"update {some}", lambda s: _report(pair.table(s, kind).update(some))
        case "lookup":
            keys = rows.select(list(kind.keys) or ["id"])
            return f"lookup {keys}", lambda s: pair.table(s, kind).lookup(keys).to_pylist()
        case "log":
            mode = "changelog" if kind.keys else "log"
            start = chance.randrange(30)
            return f"log from {start}", lambda s: _log(pair.table(s, kind), mode, start)
        case "limit":
            limit = chance.randrange(1, 6)
            scan = {"limit": limit, "strategy": "limit_scan"}
            return f"limit {limit}", lambda s: _rows(pair.table(s, kind).scan(**scan))
        case _:
            return "offsets", lambda s: _offsets(pair.table(s, kind))


def _random_rows(chance: random.Random, kind: Kind) -> pa.Table:
    count = chance.choice([1, 1, 2, 3, 9])
    ids = [chance.randrange(KEYS) for _ in range(count)]
    columns = {
        "id": pa.array(ids, pa.int32()),
        "name": pa.array([chance.choice([None, "", "é", f"v{each}"]) for each in ids], pa.string()),
        "n": pa.array(
            [chance.choice([None, 0, each, -(2**62), 2**62]) for each in ids], pa.int64()
        ),
    }
    if kind.partition_by:
        columns["day"] = pa.array([chance.choice(DAYS) for _ in ids], pa.string())
    return pa.table(columns)


def _report(report: Any) -> Any:
    """How many rows were written, and where each bucket's log ends since; ids are each server's."""
    return report.rows, sorted(report.last_offsets.values())


def _log(table: Table, mode: str, start: int = 0) -> list[dict[str, Any]]:
    names = ["_change_type", "_log_offset", *(["_partition"] if table.partition_by else [])]
    columns = [*names, *table.schema.names]
    return _rows(table.scan(mode=mode, columns=columns, start="earliest"), start)


def _rows(scan: Any, start: int = 0) -> list[dict[str, Any]]:
    rows = [each for each in scan.to_arrow().to_pylist() if each.get("_log_offset", start) >= start]
    return sorted(rows, key=lambda each: repr(sorted(each.items())))


def _offsets(table: Table) -> Any:
    return sorted(
        (each["partition"] or "", each["bucket"], each["earliest"], each["end"])
        for each in table.offsets().to_pylist()
    )
