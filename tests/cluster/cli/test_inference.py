"""`--create` chooses types that keep every value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.cli.files.inference import type_of_json, type_of_texts
from fluss.cli.files.json_file import parse_json_value

UTC_US = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-2", None], pa.int64()),
        (["007", "1"], pa.string()),
        (["+1"], pa.string()),
        (["9223372036854775807"], pa.int64()),
        (["1", "9223372036854775808"], pa.decimal128(38, 0)),
        (["9" * 39], pa.string()),
        (["1", "1.5"], pa.float64()),
        (["1.50", "1e5"], pa.float64()),
        (["0.1234567890123456789"], pa.decimal128(38, 19)),
        (["12345678901234567.25", "0.5"], pa.decimal128(38, 2)),
        (["1e400"], pa.string()),
        (["1e-400"], pa.string()),
        (["nan", "1.5"], pa.string()),
        (["true", "false"], pa.bool_()),
        (["True"], pa.string()),
        (["1", "true"], pa.string()),
        (["2026-01-31"], pa.date32()),
        (["2026-02-31"], pa.string()),
        (["12:00:00"], pa.time32("s")),
        (["12:00:00.5"], pa.time32("ms")),
        (["12:00:00.123456"], pa.string()),
        (["2026-01-31T12:00:00"], pa.timestamp("us")),
        (["2026-01-31 12:00:00.1234567"], pa.timestamp("ns")),
        (["2300-01-31 12:00:00.1234567"], pa.string()),
        (["2026-01-31T12:00:00Z", "2026-01-31T12:00:00+01:00"], UTC_US),
        (["2026-01-31T12:00:00Z", "2026-01-31T12:00:00"], pa.string()),
        (["2026-01-31", "2026-01-31T12:00:00"], pa.string()),
        (["", "1"], pa.string()),
        ([None], pa.string()),
        ([], pa.string()),
    ],
)
def test_a_column_of_texts_gets_a_type_that_keeps_them(texts, kind):
    assert type_of_texts(texts) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "99999999999999999999"], pa.decimal128(38, 0)),
        (['"1"'], pa.string()),
        (['"true"', "true"], pa.string()),
        (["true", "null"], pa.bool_()),
        (["1.5", "2"], pa.float64()),
        (["1e400"], pa.string()),
        (['"2026-01-31T12:00:00Z"'], UTC_US),
        (["[1, 2]", "[]", "null"], pa.list_(pa.int64())),
        (["[]"], pa.list_(pa.string())),
        (
            ['{"a": 1}', '{"b": [true]}'],
            pa.struct([("a", pa.int64()), ("b", pa.list_(pa.bool_()))]),
        ),
        (["[1]", '{"a": 1}'], pa.string()),
    ],
)
def test_a_column_of_json_gets_a_type_that_keeps_it(values, kind):
    assert type_of_json(map(parse_json_value, values)) == kind
