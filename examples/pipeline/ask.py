"""Queries the tables of the pipeline, in DuckDB and in Polars, while it runs.

A query reads the rows in a table's lake and the later rows of its log, each row once; `sources`
shows how many rows come from each. On a cluster without a lake it reads the rows of the cluster.

python examples/pipeline/ask.py fluss://127.0.0.1:9123
"""

from __future__ import annotations

import argparse

import polars as pl

import fluss
import fluss_duckdb
import fluss_polars  # noqa: F401 - gives Polars scan_fluss

PAGES = """
    SELECT page, sum(clicks) AS clicks, round(sum(spent_ms) / 1000) AS spent_s
    FROM fluss('{database}.minutes') GROUP BY page ORDER BY clicks DESC
"""

# All clicks: if the log is kept for a day, older clicks are read from the lake.
HOURS = """
    SELECT strftime(date_trunc('hour', "at" AT TIME ZONE 'UTC'), '%Y-%m-%d %H:%M') AS hour, count(*) AS clicks,
        count(DISTINCT "user") AS users
    FROM fluss('{database}.clicks') GROUP BY hour ORDER BY hour
"""


def by_page(servers: str, database: str = "clicks") -> list[tuple[str, int, float]]:
    """Clicks by page, in SQL."""
    with fluss_duckdb.connect(config={"bootstrap.servers": servers}) as con:
        rows: list[tuple[str, int, float]] = con.sql(PAGES.format(database=database)).fetchall()
        return rows


def by_hour(servers: str, database: str = "clicks") -> list[tuple[str, int, int]]:
    """Clicks and users by hour, of the whole history, in SQL."""
    with fluss_duckdb.connect(config={"bootstrap.servers": servers}) as con:
        rows: list[tuple[str, int, int]] = con.sql(HOURS.format(database=database)).fetchall()
        return rows


def busiest(servers: str, database: str = "clicks", minutes: int = 3) -> pl.DataFrame:
    """The minutes with most clicks, in Polars."""
    return (
        pl.scan_fluss(f"{database}.minutes", config={"bootstrap.servers": servers})
        .group_by("minute")
        .agg(pl.col("clicks").sum())
        .sort("clicks", "minute", descending=True)
        .head(minutes)
        .collect()
    )


def longest(servers: str, database: str = "clicks", users: int = 3) -> pl.DataFrame:
    """The users who spent most time, of the whole history, in Polars."""
    return (
        pl.scan_fluss(f"{database}.clicks", config={"bootstrap.servers": servers})
        .group_by("user")
        .agg(pl.len().alias("clicks"), (pl.col("spent_ms").sum() / 1000).round().alias("spent_s"))
        .sort("spent_s", "user", descending=True)
        .head(users)
        .collect()
    )


def sources(servers: str, database: str = "clicks") -> dict[str, str]:
    """Show how much of each table is read from the lake, and how much from the log."""
    found = {}
    with fluss.connect(f"fluss://{servers}/{database}") as session:
        for name in ("clicks", "minutes"):
            lines = [each.strip() for each in session.table(name).scan().explain().splitlines()]
            of_lake = [each for each in lines if each.startswith(("lake:", "from the lake:"))]
            found[name] = of_lake[-1] if of_lake else "it has no lake"
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Query what the pipeline has so far.")
    parser.add_argument("url")
    parser.add_argument("--database", default="clicks")
    given = parser.parse_args()
    servers = given.url.removeprefix("fluss://").rstrip("/")
    for page, clicks, spent_s in by_page(servers, given.database):
        print(f"{page:<10}{clicks:>8} clicks {spent_s:>8.0f} s")
    print(busiest(servers, given.database))
    for hour, clicks, users in by_hour(servers, given.database):
        print(f"{hour:<18}{clicks:>8} clicks {users:>5} users")
    print(longest(servers, given.database))
    for name, text in sources(servers, given.database).items():
        print(f"{given.database}.{name}: {text}")
