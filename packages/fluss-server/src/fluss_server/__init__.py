"""Apache Fluss servers for laptops, notebooks and tests."""
