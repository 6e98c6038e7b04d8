"""Apache Fluss tables as lazy Polars frames."""
