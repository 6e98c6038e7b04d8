"""Random queries give the same result as on the same rows in memory.

Filters, columns, limits, groups and joins, in every engine of Polars; `./dev prove polars` runs
1 000 of them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import fluss_polars  # noqa: F401 - gives Polars scan_fluss
from tests.support.profiles import IS_EXHAUSTIVE

QUERIES = 1_000 if IS_EXHAUSTIVE else 60
SEED = 20_261_118
ROWS = 3_000
DAYS = [f"2026-01-{day:02}" for day in range(1, 6)]
c = pl.col


def facts_of(dice: Random) -> pa.Table:
    def some(make: Callable[[], object]) -> list[object]:
        return [None if dice.random() < 0.1 else make() for _ in range(ROWS)]

    start = dt.datetime(2026, 1, 1)  # noqa: DTZ001
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [dice.choice(DAYS) for _ in range(ROWS)],
            "k": pa.array(some(lambda: dice.randrange(40)), pa.int32()),
            "x": pa.array(some(lambda: dice.choice([math.nan, -0.0, 0.0, dice.uniform(-9, 9)])),
                          pa.float64()),
            "s": some(lambda: dice.choice(["", "a", "ab", "b", "ß", "zz"])),
            "p": pa.array(some(lambda: Decimal(dice.randrange(-999, 999)) / 100),
                          pa.decimal128(8, 2)),
            "t": pa.array(some(lambda: start + dt.timedelta(seconds=dice.randrange(10**6))),
                          pa.timestamp("us")),
            "b": pa.array(some(lambda: dice.random() < 0.5), pa.bool_()),
        }
    )  # fmt: skip


def names_of(dice: Random) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(range(0, 60, 2), pa.int32()),
            "name": [dice.choice(["north", "south", "east", None]) for _ in range(30)],
        }
    )


@pytest.fixture(scope="module")
def tables(cluster):
    import uuid

    import fluss

    dice = Random(SEED)
    database = f"queries_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as session:
        session.create_database(database)
        try:
            facts, names = facts_of(dice), names_of(dice)
            log = session.create_table("facts", facts, buckets=2, partition_by=["day"])
            state = session.create_table("state", facts, buckets=3, primary_key=["id"])
            keyed = session.create_table("names", names, buckets=2, primary_key=["k"])
            for start in range(0, ROWS, 500):
                log.append(facts.slice(start, 500))
            state.upsert(facts)
            keyed.upsert(names)
            yield (
                {"log": log, "state": state, "names": keyed},
                pl.DataFrame(facts),
                pl.DataFrame(names),
            )
        finally:
            session.drop_database(database, cascade=True)


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, and the number of rows that a limit lets it choose freely."""

    steps: tuple[tuple[str, Callable[[pl.LazyFrame, pl.LazyFrame], pl.LazyFrame]], ...]
    limit: int | None

    def on(self, facts: pl.LazyFrame, names: pl.LazyFrame) -> pl.LazyFrame:
        frame = facts
        for _, step in self.steps:
            frame = step(frame, names)
        return frame

    def __str__(self) -> str:
        return " > ".join(told for told, _ in self.steps) + f" > limit {self.limit}"


def random_condition(dice: Random, depth: int = 0) -> pl.Expr:
    roll = dice.random()
    if depth < 3 and roll < 0.35:
        first, second = (random_condition(dice, depth + 1) for _ in range(2))
        return first & second if dice.random() < 0.5 else first | second
    if depth < 3 and roll < 0.45:
        return ~random_condition(dice, depth + 1)
    moment = dt.datetime(2026, 1, dice.randrange(1, 13))  # noqa: DTZ001
    made = [
        lambda: compared(dice, c("id"), dice.randrange(ROWS)),
        lambda: compared(dice, c("k"), dice.randrange(40)),
        lambda: compared(dice, c("x"), dice.choice([0.0, -0.0, math.nan, dice.uniform(-9, 9)])),
        lambda: compared(dice, c("s"), dice.choice(["", "a", "b", "zz"])),
        lambda: compared(dice, c("day"), dice.choice(DAYS)),
        lambda: compared(dice, c("p"), Decimal(dice.randrange(-999, 999)) / 100),
        lambda: compared(dice, c("t"), moment),
        lambda: c("id").is_in([dice.randrange(ROWS) for _ in range(dice.randrange(5))]),
        lambda: c("s").is_in(["a", "zz", None], nulls_equal=dice.random() < 0.5),
        lambda: c("day").is_in(dice.sample(DAYS, 2)),
        lambda: c(dice.choice(["k", "x", "s", "p", "t", "b"])).is_null(),
        lambda: c(dice.choice(["k", "x", "s", "p", "t", "b"])).is_not_null(),
        lambda: c("s").str.starts_with("a"),
        lambda: c("s").str.contains("b"),
        lambda: c("x").is_nan(),
        lambda: c("x").is_between(-3.0, 3.0),
        lambda: c("b"),
        lambda: c("id") % 7 == 3,
        lambda: c("t").dt.day() > 5,
    ]
    return dice.choice(made)()


def compared(dice: Random, column: pl.Expr, value: object) -> pl.Expr:
    how = dice.choice(["eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"])
    compared_: pl.Expr = getattr(column, how)(value)
    return compared_


def random_query(dice: Random) -> Query:
    steps = []
    for _ in range(dice.randrange(3)):
        condition = random_condition(dice)
        steps.append((f"filter {condition}", lambda f, _, e=condition: f.filter(e)))
    roll = dice.random()
    if roll < 0.25:
        by = dice.sample(["day", "k", "s", "b"], dice.randrange(1, 3))
        steps.append((f"group by {by}", lambda f, _, by=by: f.group_by(by).agg(
            pl.len().alias("n"), c("x").sum().alias("sum"), c("p").max().alias("max"),
            c("id").min().alias("min"), c("t").n_unique().alias("uniques"))))  # fmt: skip
    elif roll < 0.45:
        how = dice.choice(["inner", "left", "semi", "anti", "full"])
        steps.append((f"{how} join", lambda f, n, how=how: f.join(n, on="k", how=how)))
    elif roll < 0.55:
        steps.append(("self-join", lambda f, _: f.join(
            f.select("id", again=c("x")), on="id", how="inner")))  # fmt: skip
    elif roll < 0.65:
        count = dice.randrange(1, 50)
        steps.append((f"top {count}", lambda f, _, n=count: f.sort("id", descending=True).head(n)))
    elif roll < 0.9:
        kept = dice.sample(["id", "day", "k", "x", "s", "p", "t", "b"], dice.randrange(1, 6))
        steps.append((f"select {kept}", lambda f, _, kept=kept: f.select(kept)))
    else:
        steps.append(("count", lambda f, _: f.select(pl.len())))
    return Query(steps=tuple(steps), limit=dice.randrange(100) if dice.random() < 0.2 else None)


@pytest.mark.parametrize("part", range(10))
def test_random_queries_give_the_same_as_in_memory(tables, part):
    on_server, facts, names = tables
    dice = Random(SEED + part)
    for number in range(QUERIES // 10):
        query = random_query(dice)
        source = pl.scan_fluss(on_server[dice.choice(["log", "log", "state"])])
        engine = dice.choice(["auto", "streaming", "in-memory"])
        lazy = query.on(source, pl.scan_fluss(on_server["names"]))
        expected = query.on(facts.lazy(), names.lazy()).collect()
        told = f"{number}: {query} ({engine})"
        if query.limit is None:
            check_equal(lazy.collect(engine=engine), expected, told)
            continue
        got = lazy.head(query.limit).collect(engine=engine)
        assert got.height == min(query.limit, expected.height), told
        assert got.schema == expected.schema, told
        if "sum" not in expected.columns:
            found = got.join(expected.unique(), on=expected.columns, how="anti", nulls_equal=True)
            assert found.height == 0, told


def check_equal(got: pl.DataFrame, expected: pl.DataFrame, told: str) -> None:
    try:
        # Sums of floats depend on the order, which is undefined.
        assert_frame_equal(got, expected, check_row_order=False, rel_tol=1e-9, abs_tol=1e-9)
    except AssertionError as error:
        raise AssertionError(f"{told}\n{error}") from None
