"""Queries what the pipeline has counted so far, in DuckDB and in Polars, while it runs.

python examples/pipeline/ask.py fluss://127.0.0.1:9123
"""

from __future__ import annotations

import argparse

import polars as pl

import fluss_duckdb
import fluss_polars  # noqa: F401 - gives Polars scan_fluss

PAGES = """
    SELECT page, sum(clicks) AS clicks, round(sum(spent_ms) / 1000) AS spent_s
    FROM fluss('{database}.minutes') GROUP BY page ORDER BY clicks DESC
"""


def by_page(servers: str, database: str = "clicks") -> list[tuple[str, int, float]]:
    """Clicks by page, in SQL."""
    with fluss_duckdb.connect(config={"bootstrap.servers": servers}) as con:
        rows: list[tuple[str, int, float]] = con.sql(PAGES.format(database=database)).fetchall()
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Query what the pipeline has counted so far.")
    parser.add_argument("url")
    parser.add_argument("--database", default="clicks")
    given = parser.parse_args()
    servers = given.url.removeprefix("fluss://").rstrip("/")
    for page, clicks, spent_s in by_page(servers, given.database):
        print(f"{page:<10}{clicks:>8} clicks {spent_s:>8.0f} s")
    print(busiest(servers, given.database))
