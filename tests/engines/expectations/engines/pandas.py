"""pandas, by `pd.read_fluss` and Arrow's dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

import fluss.pandas  # noqa: F401 - gives pandas its reader
from tests.engines.expectations.engine import Mark, never

ONE_SCAN = never("its filter and its limit are those of the scan, and the filter comes first")


class Pandas:
    marks: Mapping[str, Mark] = {"limit as the scan's option, then*": ONE_SCAN}
    nan_is_greatest = False

    def read(self, table, *, config, columns, filter, limit, options) -> Any:  # noqa: A002 - the scan's name
        said = {"columns": columns, "filter": filter, "limit": limit}
        given = {name: value for name, value in said.items() if value is not None}
        frame = pd.read_fluss(table, config=config, **{**options, **given})
        return pa.Table.from_pandas(frame, preserve_index=False)
