"""Random queries over Fluss give the same result as over the same rows in DuckDB's memory."""

from __future__ import annotations

import datetime as dt
import math
import random
import time
from decimal import Decimal

import pyarrow as pa
import pytest

import fluss
import fluss_duckdb
from tests.engines.duckdb.conftest import DATABASE_SETTLE_S
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.fix_cluster import IMPATIENT

QUERIES = 1_000 if IS_EXHAUSTIVE else 60
ROWS = 2_000
EPOCH = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
WORDS = ["", "a", "ab", "b%", "Ä", "n'1"]


def random_rows(rng: random.Random) -> pa.Table:
    def maybe(value):
        return None if rng.random() < 0.1 else value

    numbers = range(ROWS)
    floats = [0.0, -0.0, math.nan, 1.5, -2.25]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array([maybe(rng.randrange(-5, 6)) for _ in numbers], pa.int32()),
            "day": [rng.choice(DAYS) for _ in numbers],
            "name": [maybe(rng.choice(WORDS)) for _ in numbers],
            "x": pa.array([maybe(rng.choice(floats)) for _ in numbers], pa.float64()),
            "price": pa.array(
                [maybe(Decimal(rng.randrange(-999, 999)) / 100) for _ in numbers],
                pa.decimal128(10, 2),
            ),
            "ts": pa.array(
                [maybe(EPOCH + dt.timedelta(seconds=rng.randrange(99))) for _ in numbers],
                pa.timestamp("us"),
            ),
            "ok": pa.array([maybe(rng.random() < 0.5) for _ in numbers], pa.bool_()),
        }
    )


LITERALS = {
    "id": lambda rng: str(rng.randrange(-10, ROWS + 10)),
    "k": lambda rng: str(rng.randrange(-6, 7)),
    "day": lambda rng: f"'{rng.choice(DAYS)}'",
    "name": lambda rng: "'" + rng.choice(WORDS).replace("'", "''") + "'",
    "x": lambda rng: rng.choice(["0.0", "-0.0", "1.5", "'nan'::DOUBLE", "7"]),
    "price": lambda rng: f"{rng.randrange(-99, 99)}.{rng.randrange(100):02}",
    "ts": lambda rng: f"TIMESTAMP '2026-01-01 00:01:{rng.randrange(60):02}'",
    "ok": lambda rng: rng.choice(["true", "false"]),
}


def condition(rng: random.Random, prefix: str, depth: int = 0) -> str:
    if depth < 3 and rng.random() < 0.4:
        word = rng.choice(["AND", "OR"])
        sides = (condition(rng, prefix, depth + 1) for _ in range(2))
        joined = f"({f' {word} '.join(sides)})"
        return f"NOT {joined}" if rng.random() < 0.2 else joined
    column = rng.choice(list(LITERALS))
    value, name = LITERALS[column], f"{prefix}{column}"
    match rng.randrange(7):
        case 0:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        case 1:
            listed = ", ".join(value(rng) for _ in range(rng.randrange(1, 5)))
            return f"{name} {rng.choice(['', 'NOT '])}IN ({listed})"
        case 2:
            return f"{name} BETWEEN {value(rng)} AND {value(rng)}"
        case 3 if column == "name":
            return f"{name} LIKE '{rng.choice(['a%', '%b%', '_', '%'])}'"
        case 4 if column in {"id", "k"}:
            return f"{name} % 3 {rng.choice(['=', '<>'])} {rng.randrange(3)}"
        case 5:
            other = f"{prefix}{rng.choice(['id', 'k'])}"
            return f"{other} {rng.choice(['<', '>='])} {LITERALS['k'](rng)}"
        case _:
            return f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {value(rng)}"


def query(rng: random.Random) -> tuple[str, bool]:
    """Make a query with `{t}` for the table, and whether its limit may choose any rows."""
    where = f" WHERE {condition(rng, '')}" if rng.random() < 0.8 else ""
    columns = rng.sample(list(LITERALS), rng.randrange(1, 5))
    match rng.randrange(6):
        case 0:
            return f"SELECT {', '.join(columns)} FROM {{t}}{where}", False
        case 1:
            limit = f" LIMIT {rng.randrange(30)}"
            return f"SELECT {', '.join(columns)} FROM {{t}}{where}{limit}", True
        case 2:
            order = f" ORDER BY id {rng.choice(['', 'DESC'])} LIMIT {rng.randrange(30)}"
            return f"SELECT {', '.join(columns)} FROM {{t}}{where}{order}", False
        case 3:
            # SQL does not define whether 0.0 or -0.0 represents their group.
            group = rng.choice(["k", "day", "name", "ok", "x + 0.0"])
            having = f" HAVING count(*) > {rng.randrange(20)}" if rng.random() < 0.3 else ""
            found = "count(*), sum(price), min(ts), max(id), count(DISTINCT name)"
            return f"SELECT {group}, {found} FROM {{t}}{where} GROUP BY {group}{having}", False
        case 4:
            left, right = condition(rng, "a."), condition(rng, "b.")
            kind = rng.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
            one = f"(SELECT * FROM {{t}} a WHERE {left})"
            other = f"(SELECT * FROM {{t}} b WHERE {right})"
            key = rng.choice(["a.id = b.id", "a.id = b.id + 1", "a.id = b.id AND a.k = b.k"])
            return f"SELECT count(*), sum(a.id) FROM {one} a {kind} {other} b ON {key}", False
        case _:
            return f"SELECT count(*), count(x), sum(k) FROM {{t}}{where}", False


@pytest.fixture(scope="module")
def asked(cluster):
    rng = random.Random(20_260_101)
    rows = random_rows(rng)
    name = f"random_{random.Random().randrange(2**48):012x}"
    with (
        fluss.connect(f"fluss://{cluster.bootstrap}/{name}", **IMPATIENT) as session,
        fluss_duckdb.connect(session=session) as con,
    ):
        session.create_database(name)
        time.sleep(DATABASE_SETTLE_S)
        try:
            table = session.create_table("log", rows, buckets=3, partition_by=["day"])
            for start in range(0, ROWS, 250):
                table.append(rows.slice(start, 250))
            session.upsert(
                "state", rows, create=True, primary_key=["id"], buckets=2, bucket_key=["id"]
            )
            con.register("given", rows)
            con.execute("CREATE TABLE memory AS FROM given")
            yield con, rng
        finally:
            session.drop_database(name, cascade=True)


def test_random_queries_answer_as_over_memory(asked):
    con, rng = asked
    for number in range(QUERIES):
        text, is_any = query(rng)
        table = rng.choice(["fluss('log')", "fluss('log')", "fluss('state')"])
        mine = answered(con, text.format(t=table))
        if is_any:
            whole = answered(con, text.format(t="memory").rpartition(" LIMIT ")[0])
            expected = min(int(text.rpartition(" ")[2]), len(whole))
            assert len(mine) == expected, (number, text)
            assert not set(mine) - set(whole), (number, text)
        else:
            assert sorted(mine) == sorted(answered(con, text.format(t="memory"))), (number, text)


def answered(con, sql):
    return [repr(row) for row in con.execute(sql).fetchall()]
