"""Apache Fluss servers for laptops, notebooks and tests: an embedded one, and the real one."""

from fluss_server.local_cluster import LocalCluster

__all__ = ["LocalCluster"]
