"""The core without an engine: `Scan.to_arrow()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fluss.scan import open_scan
from tests.engines.expectations.engine import Mark, never

ONE_SCAN = never("its filter and its limit are those of the scan, and the filter comes first")


class Core:
    marks: Mapping[str, Mark] = {"limit as the scan's option, then*": ONE_SCAN}
    nan_is_greatest = False

    def read(self, table, *, config, columns, filter, limit, options) -> Any:  # noqa: A002 - the scan's name
        given = {"columns": columns, "filter": filter, "limit": limit}
        expected = {
            **options,
            **{name: value for name, value in given.items() if value is not None},
        }
        return open_scan(table, config=config, **expected).to_arrow()
