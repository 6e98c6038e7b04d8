"""The name under which Spark discovers `fluss_spark` by itself."""
