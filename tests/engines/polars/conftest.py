"""The rows for queries in Polars."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.servers.fix_tables import DAYS, ROWS


@pytest.fixture
def rows():
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [DAYS[each % 3] for each in range(ROWS)],
            "name": [f"n{each % 7}" for each in range(ROWS)],
            "score": [each / 8 for each in range(ROWS)],
        }
    )
