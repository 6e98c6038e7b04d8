"""Apache Fluss for Python: the public names, and nothing else."""

__version__ = "0.1.0"
