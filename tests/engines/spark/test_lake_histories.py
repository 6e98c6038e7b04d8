"""Random histories of tables with a lake, read and copied by Spark: unions are the state."""

from __future__ import annotations

import pytest

import fluss_spark
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake.histories import ENGINES, NAMES, History, rows_of
from tests.support.lake.readers import values

pytestmark = pytest.mark.slow  # each read and each round is a job of Spark

STEPS = 8 if IS_EXHAUSTIVE else 2


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
@pytest.mark.parametrize("engine", ENGINES if IS_EXHAUSTIVE else ["image wal", "aggregation"])
def test_spark_reads_the_state(spark, lake_session, engine, mode):
    servers = lake_session.config.bootstrap_servers

    def by_spark(table, session):
        reader = spark.read.format("fluss").option("bootstrap.servers", servers)
        return reader.load(table.name).toArrow()

    history = History(lake_session, engine, mode, f"{engine} {mode}", readers=[by_spark])
    for _ in range(STEPS):
        history.write()
        done = fluss_spark.tier(
            spark, history.table.name, cluster=lake_session, now=True, rows_max=25
        )
        assert done.errors == {}
        assert rows_of(history.table, lake="only") == rows_of(history.table, lake="off")
        history.write()
        history.check()
        rows = by_spark(history.table, lake_session)
        assert values(rows, NAMES) == values(rows_of(history.table), NAMES)
