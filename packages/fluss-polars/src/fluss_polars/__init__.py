"""Apache Fluss tables as Polars frames: `pl.scan_fluss("db.table")`, `df.fluss.append("db.table")`.

Importing this package gives Polars the functions `scan_fluss` and `read_fluss`, and frames the
namespace `fluss`. What is read and written, and how, is the business of `fluss.session` and
`fluss.scan`; here is only what Polars asks for, in its words and in Fluss's.
"""

import polars as pl

from fluss_polars.lazy_scan import read_fluss, scan_fluss
from fluss_polars.polars_accessor import FlussFrame, FlussLazyFrame

__all__ = ["FlussFrame", "FlussLazyFrame", "read_fluss", "scan_fluss"]

# The names people look for. Polars has no registry for sources, so the functions are put there.
pl.scan_fluss = scan_fluss  # type: ignore[attr-defined]
pl.read_fluss = read_fluss  # type: ignore[attr-defined]
