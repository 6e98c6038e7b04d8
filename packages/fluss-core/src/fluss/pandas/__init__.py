"""Fluss for pandas: importing this gives `pd.read_fluss` and the accessor `df.fluss`.

    import fluss.pandas
    df = pd.read_fluss("sales.orders", tail=1_000)
    df.fluss.append("sales.copied")

Rule: `fluss.scan` reads and `fluss.session` writes; here is only what pandas needs beyond Arrow:
dtypes, an index, chunks, and a progress line for long reads.
"""

from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install

try:
    import pandas as pd
except ImportError as error:
    raise MissingExtraError(
        f"pandas is not installed: {error}.", hint=how_to_install("fluss-core[pandas]")
    ) from error

from fluss.pandas.pandas_accessor import FlussAccessor
from fluss.pandas.read_frame import Chunks, read_fluss

__all__ = ["Chunks", "FlussAccessor", "read_fluss"]

# pandas has no registry for readers, so the function is put where users look for it.
pd.read_fluss = read_fluss  # type: ignore[attr-defined]
