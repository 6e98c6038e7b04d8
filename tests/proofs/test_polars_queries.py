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
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.fix_cluster import IMPATIENT

QUERIES = 1_000 if IS_EXHAUSTIVE else 60
SEED = 20_261_118
ROWS = 3_000
DAYS = [f"2026-01-{day:02}" for day in range(1, 6)]
c = pl.col


def facts_of(rng: Random) -> pa.Table:
    def some(make: Callable[[], object]) -> list[object]:
        return [None if rng.random() < 0.1 else make() for _ in range(ROWS)]

    start = dt.datetime(2026, 1, 1)  # noqa: DTZ001
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [rng.choice(DAYS) for _ in range(ROWS)],
            "k": pa.array(some(lambda: rng.randrange(40)), pa.int32()),
            "x": pa.array(some(lambda: rng.choice([math.nan, -0.0, 0.0, rng.uniform(-9, 9)])),
                          pa.float64()),
            "s": some(lambda: rng.choice(["", "a", "ab", "b", "ß", "zz"])),
            "p": pa.array(some(lambda: Decimal(rng.randrange(-999, 999)) / 100),
                          pa.decimal128(8, 2)),
            "t": pa.array(some(lambda: start + dt.timedelta(seconds=rng.randrange(10**6))),
                          pa.timestamp("us")),
            "b": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
        }
    )  # fmt: skip


def names_of(rng: Random) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(range(0, 60, 2), pa.int32()),
            "name": [rng.choice(["north", "south", "east", None]) for _ in range(30)],
        }
    )


@pytest.fixture(scope="module")
def tables(cluster):
    import uuid

    import fluss

    rng = Random(SEED)
    database = f"queries_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as session:
        session.create_database(database)
        try:
            facts, names = facts_of(rng), names_of(rng)
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


def random_condition(rng: Random, depth: int = 0) -> pl.Expr:
    roll = rng.random()
    if depth < 3 and roll < 0.35:
        first, second = (random_condition(rng, depth + 1) for _ in range(2))
        return first & second if rng.random() < 0.5 else first | second
    if depth < 3 and roll < 0.45:
        return ~random_condition(rng, depth + 1)
    moment = dt.datetime(2026, 1, rng.randrange(1, 13))  # noqa: DTZ001
    made = [
        lambda: compared(rng, c("id"), rng.randrange(ROWS)),
        lambda: compared(rng, c("k"), rng.randrange(40)),
        lambda: compared(rng, c("x"), rng.choice([0.0, -0.0, math.nan, rng.uniform(-9, 9)])),
        lambda: compared(rng, c("s"), rng.choice(["", "a", "b", "zz"])),
        lambda: compared(rng, c("day"), rng.choice(DAYS)),
        lambda: compared(rng, c("p"), Decimal(rng.randrange(-999, 999)) / 100),
        lambda: compared(rng, c("t"), moment),
        lambda: c("id").is_in([rng.randrange(ROWS) for _ in range(rng.randrange(5))]),
        lambda: c("s").is_in(["a", "zz", None], nulls_equal=rng.random() < 0.5),
        lambda: c("day").is_in(rng.sample(DAYS, 2)),
        lambda: c(rng.choice(["k", "x", "s", "p", "t", "b"])).is_null(),
        lambda: c(rng.choice(["k", "x", "s", "p", "t", "b"])).is_not_null(),
        lambda: c("s").str.starts_with("a"),
        lambda: c("s").str.contains("b"),
        lambda: c("x").is_nan(),
        lambda: c("x").is_between(-3.0, 3.0),
        lambda: c("b"),
        lambda: c("id") % 7 == 3,
        lambda: c("t").dt.day() > 5,
    ]
    return rng.choice(made)()


def compared(rng: Random, column: pl.Expr, value: object) -> pl.Expr:
    how = rng.choice(["eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"])
    compared_: pl.Expr = getattr(column, how)(value)
    return compared_


def random_query(rng: Random) -> Query:
    steps = []
    for _ in range(rng.randrange(3)):
        condition = random_condition(rng)
        steps.append((f"filter {condition}", lambda f, _, e=condition: f.filter(e)))
    roll = rng.random()
    if roll < 0.25:
        by = rng.sample(["day", "k", "s", "b"], rng.randrange(1, 3))
        steps.append((f"group by {by}", lambda f, _, by=by: f.group_by(by).agg(
            pl.len().alias("n"), c("x").sum().alias("sum"), c("p").max().alias("max"),
            c("id").min().alias("min"), c("t").n_unique().alias("uniques"))))  # fmt: skip
    elif roll < 0.45:
        how = rng.choice(["inner", "left", "semi", "anti", "full"])
        steps.append((f"{how} join", lambda f, n, how=how: f.join(n, on="k", how=how)))
    elif roll < 0.55:
        steps.append(("self-join", lambda f, _: f.join(
            f.select("id", again=c("x")), on="id", how="inner")))  # fmt: skip
    elif roll < 0.65:
        count = rng.randrange(1, 50)
        steps.append((f"top {count}", lambda f, _, n=count: f.sort("id", descending=True).head(n)))
    elif roll < 0.9:
        kept = rng.sample(["id", "day", "k", "x", "s", "p", "t", "b"], rng.randrange(1, 6))
        steps.append((f"select {kept}", lambda f, _, kept=kept: f.select(kept)))
    else:
        steps.append(("count", lambda f, _: f.select(pl.len())))
    return Query(steps=tuple(steps), limit=rng.randrange(100) if rng.random() < 0.2 else None)


@pytest.mark.parametrize("part", range(10))
def test_random_queries_give_the_same_as_in_memory(tables, part):
    on_server, facts, names = tables
    rng = Random(SEED + part)
    for number in range(QUERIES // 10):
        query = random_query(rng)
        source = pl.scan_fluss(on_server[rng.choice(["log", "log", "state"])])
        engine = rng.choice(["auto", "streaming", "in-memory"])
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
