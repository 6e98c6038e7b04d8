"""An Apache Fluss server in Python, for laptops, notebooks and tests."""

from fluss_server.local_cluster import LocalCluster

__all__ = ["LocalCluster"]
