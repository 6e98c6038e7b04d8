"""Apache Fluss tables as lazy Polars frames: `pl.scan_fluss("db.table")`.

Importing this package gives Polars the function `scan_fluss`. What it reads and how is the business
of `fluss.connector`; only the mapping of Polars's requests is here.
"""

import polars as pl

from fluss_polars.scan import scan_fluss

__all__ = ["scan_fluss"]

# The name people look for. Polars has no registry for sources, so the function is put there.
pl.scan_fluss = scan_fluss  # type: ignore[attr-defined]
