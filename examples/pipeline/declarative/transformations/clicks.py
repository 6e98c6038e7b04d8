"""The clicks among the lines of `clicks.raw`, into `clicks.declared`; Fluss is source and sink.

FLUSS_BOOTSTRAP_SERVERS names the cluster. Spark finds the format by itself: it is
not registered here, where doing so would end the command with an error after its work is done.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession, functions as f

spark = SparkSession.active()

WRITTEN = "id string, user string, page string, at string, spent_ms bigint"


@dp.temporary_view
def parsed() -> DataFrame:
    """The lines, parsed."""
    raw = spark.readStream.format("fluss").option("startingOffsets", "earliest").load("clicks.raw")
    return raw.select(f.from_json("line", WRITTEN).alias("parsed")).select("parsed.*")


dp.create_sink("declared", "fluss", {"path": "clicks.declared", "createIfNotExists": "true"})


@dp.append_flow(target="declared")
def clicks() -> DataFrame:
    """The valid clicks."""
    return (
        spark.readStream.table("parsed")
        .withColumn("at", f.try_to_timestamp("at"))
        .where("id IS NOT NULL AND user IS NOT NULL AND page IS NOT NULL AND at IS NOT NULL")
        .where("spent_ms BETWEEN 0 AND 86400000")
        .withColumn("spent_ms", f.col("spent_ms").cast("int"))
    )
