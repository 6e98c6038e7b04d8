"""Lines of `clicks.raw` that are clicks, to `clicks.declared`; Fluss is the source and the sink.

The cluster is the one that FLUSS_BOOTSTRAP_SERVERS names. Spark finds the format by itself: it is
not registered here, where doing so would end the command with an error after its work is done.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession, functions as f

spark = SparkSession.active()

WRITTEN = "id string, user string, page string, at string, spent_ms bigint"


@dp.temporary_view
def said() -> DataFrame:
    """What the lines say."""
    raw = spark.readStream.format("fluss").option("startingOffsets", "earliest").load("clicks.raw")
    return raw.select(f.from_json("line", WRITTEN).alias("said")).select("said.*")


dp.create_sink("declared", "fluss", {"path": "clicks.declared", "createIfNotExists": "true"})


@dp.append_flow(target="declared")
def clicks() -> DataFrame:
    """Those that are whole."""
    return (
        spark.readStream.table("said")
        .withColumn("at", f.try_to_timestamp("at"))
        .where("id IS NOT NULL AND user IS NOT NULL AND page IS NOT NULL AND at IS NOT NULL")
        .where("spent_ms BETWEEN 0 AND 86400000")
        .withColumn("spent_ms", f.col("spent_ms").cast("int"))
    )
