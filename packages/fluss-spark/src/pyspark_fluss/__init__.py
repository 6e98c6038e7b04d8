"""The name under which Spark discovers `fluss_spark` by itself, in drivers and in workers.

Spark imports every top-level module whose name begins with `pyspark_` and registers its
`DefaultSource`; that happens in every worker, so nothing is imported here but the class.
"""

from fluss_spark.data_source import FlussDataSource as DefaultSource

__all__ = ["DefaultSource"]
