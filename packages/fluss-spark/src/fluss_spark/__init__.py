"""Apache Fluss as a PySpark data source: `spark.read.format("fluss").load("db.table")`.

`session()` returns a Spark session that is ready, `enable(spark)` prepares an existing one; the
docstring of `FlussDataSource` is the manual. Spark discovers the format by itself where
`pyspark_fluss` can be imported, except for writes from threads that Python started: those need
`session` or `enable`.
"""

from importlib.util import find_spec

from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install

if find_spec("pyspark") is None:
    raise MissingExtraError("fluss_spark needs PySpark.", hint=how_to_install("fluss-spark[spark]"))

from fluss_spark.data_source import FlussDataSource
from fluss_spark.refreshed_views import refresh
from fluss_spark.spark_session import (
    enable,
    explain,
    register_views,
    session,
    table,
    upsert_batches,
)
from fluss_spark.tiering import tier

__all__ = [
    "FlussDataSource",
    "enable",
    "explain",
    "refresh",
    "register_views",
    "session",
    "table",
    "tier",
    "upsert_batches",
]
