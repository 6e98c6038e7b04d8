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
from tests.engines.duckdb.conftest import DATABASE_REST_S
from tests.support.profiles import IS_EXHAUSTIVE

QUERIES = 1_000 if IS_EXHAUSTIVE else 60
ROWS = 2_000
EPOCH = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
WORDS = ["", "a", "ab", "b%", "Ä", "n'1"]


def random_rows(dice: random.Random) -> pa.Table:
    def maybe(value):
        return None if dice.random() < 0.1 else value

    numbers = range(ROWS)
    floats = [0.0, -0.0, math.nan, 1.5, -2.25]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array([maybe(dice.randrange(-5, 6)) for _ in numbers], pa.int32()),
            "day": [dice.choice(DAYS) for _ in numbers],
            "name": [maybe(dice.choice(WORDS)) for _ in numbers],
            "x": pa.array([maybe(dice.choice(floats)) for _ in numbers], pa.float64()),
            "price": pa.array(
                [maybe(Decimal(dice.randrange(-999, 999)) / 100) for _ in numbers],
                pa.decimal128(10, 2),
            ),
            "ts": pa.array(
                [maybe(EPOCH + dt.timedelta(seconds=dice.randrange(99))) for _ in numbers],
                pa.timestamp("us"),
            ),
            "ok": pa.array([maybe(dice.random() < 0.5) for _ in numbers], pa.bool_()),
        }
    )


LITERALS = {
    "id": lambda dice: str(dice.randrange(-10, ROWS + 10)),
    "k": lambda dice: str(dice.randrange(-6, 7)),
    "day": lambda dice: f"'{dice.choice(DAYS)}'",
    "name": lambda dice: "'" + dice.choice(WORDS).replace("'", "''") + "'",
    "x": lambda dice: dice.choice(["0.0", "-0.0", "1.5", "'nan'::DOUBLE", "7"]),
    "price": lambda dice: f"{dice.randrange(-99, 99)}.{dice.randrange(100):02}",
    "ts": lambda dice: f"TIMESTAMP '2026-01-01 00:01:{dice.randrange(60):02}'",
    "ok": lambda dice: dice.choice(["true", "false"]),
}


def condition(dice: random.Random, prefix: str, depth: int = 0) -> str:
    if depth < 3 and dice.random() < 0.4:
        word = dice.choice(["AND", "OR"])
        sides = (condition(dice, prefix, depth + 1) for _ in range(2))
        joined = f"({f' {word} '.join(sides)})"
        return f"NOT {joined}" if dice.random() < 0.2 else joined
    column = dice.choice(list(LITERALS))
    value, name = LITERALS[column], f"{prefix}{column}"
    match dice.randrange(7):
        case 0:
            return f"{name} IS {dice.choice(['', 'NOT '])}NULL"
        case 1:
            listed = ", ".join(value(dice) for _ in range(dice.randrange(1, 5)))
            return f"{name} {dice.choice(['', 'NOT '])}IN ({listed})"
        case 2:
            return f"{name} BETWEEN {value(dice)} AND {value(dice)}"
        case 3 if column == "name":
            return f"{name} LIKE '{dice.choice(['a%', '%b%', '_', '%'])}'"
        case 4 if column in {"id", "k"}:
            return f"{name} % 3 {dice.choice(['=', '<>'])} {dice.randrange(3)}"
        case 5:
            other = f"{prefix}{dice.choice(['id', 'k'])}"
            return f"{other} {dice.choice(['<', '>='])} {LITERALS['k'](dice)}"
        case _:
            return f"{name} {dice.choice(['=', '<>', '<', '<=', '>', '>='])} {value(dice)}"


def query(dice: random.Random) -> tuple[str, bool]:
    """Make a query with `{t}` for the table, and whether its limit may choose any rows."""
    where = f" WHERE {condition(dice, '')}" if dice.random() < 0.8 else ""
    columns = dice.sample(list(LITERALS), dice.randrange(1, 5))
    match dice.randrange(6):
        case 0:
            return f"SELECT {', '.join(columns)} FROM {{t}}{where}", False
        case 1:
            limit = f" LIMIT {dice.randrange(30)}"
            return f"SELECT {', '.join(columns)} FROM {{t}}{where}{limit}", True
        case 2:
            order = f" ORDER BY id {dice.choice(['', 'DESC'])} LIMIT {dice.randrange(30)}"
            return f"SELECT {', '.join(columns)} FROM {{t}}{where}{order}", False
        case 3:
            # SQL does not define whether 0.0 or -0.0 represents their group.
            group = dice.choice(["k", "day", "name", "ok", "x + 0.0"])
            having = f" HAVING count(*) > {dice.randrange(20)}" if dice.random() < 0.3 else ""
            found = "count(*), sum(price), min(ts), max(id), count(DISTINCT name)"
            return f"SELECT {group}, {found} FROM {{t}}{where} GROUP BY {group}{having}", False
        case 4:
            left, right = condition(dice, "a."), condition(dice, "b.")
            kind = dice.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
            one = f"(SELECT * FROM {{t}} a WHERE {left})"
            other = f"(SELECT * FROM {{t}} b WHERE {right})"
            key = dice.choice(["a.id = b.id", "a.id = b.id + 1", "a.id = b.id AND a.k = b.k"])
            return f"SELECT count(*), sum(a.id) FROM {one} a {kind} {other} b ON {key}", False
        case _:
            return f"SELECT count(*), count(x), sum(k) FROM {{t}}{where}", False


@pytest.fixture(scope="module")
def asked(cluster):
    dice = random.Random(20_260_101)
    rows = random_rows(dice)
    name = f"random_{random.Random().randrange(2**48):012x}"
    with (
        fluss.connect(f"fluss://{cluster.bootstrap}/{name}") as session,
        fluss_duckdb.connect(session=session) as con,
    ):
        session.create_database(name)
        time.sleep(DATABASE_REST_S)
        try:
            table = session.create_table("log", rows, buckets=3, partition_by=["day"])
            for start in range(0, ROWS, 250):
                table.append(rows.slice(start, 250))
            session.upsert(
                "state", rows, create=True, primary_key=["id"], buckets=2, bucket_key=["id"]
            )
            con.register("given", rows)
            con.execute("CREATE TABLE memory AS FROM given")
            yield con, dice
        finally:
            session.drop_database(name, cascade=True)


def test_random_queries_answer_as_over_memory(asked):
    con, dice = asked
    for number in range(QUERIES):
        text, is_any = query(dice)
        table = dice.choice(["fluss('log')", "fluss('log')", "fluss('state')"])
        mine = answered(con, text.format(t=table))
        if is_any:
            whole = answered(con, text.format(t="memory").rpartition(" LIMIT ")[0])
            wanted = min(int(text.rpartition(" ")[2]), len(whole))
            assert len(mine) == wanted, (number, text)
            assert not set(mine) - set(whole), (number, text)
        else:
            assert sorted(mine) == sorted(answered(con, text.format(t="memory"))), (number, text)


def answered(con, sql):
    return [repr(row) for row in con.execute(sql).fetchall()]
