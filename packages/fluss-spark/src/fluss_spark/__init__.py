"""Apache Fluss as a PySpark data source."""
