"""Apache Fluss tables in DuckDB SQL."""
