"""Writes docs/types.md: every type of Fluss, and what it is in every engine.

`./dev generate` writes it, and a test compares it with the code. Each cell is what the engine's own
library reports for a column that is converted as a scan converts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from fluss.model.types.data_type import DATA_TYPES, DataType
from fluss.model.types.type_text import parse_type
from fluss.model.types.type_to_arrow import to_arrow_type

_HEAD = """\
# Types

The table lists the types of columns, and the type of each in every engine. Each cell is the type that the engine's
library reports for a column that was read from a table; `./dev generate` writes the page.

| Fluss | Python | Arrow | Polars | DuckDB | Spark |
|---|---|---|---|---|---|
"""

_TAIL = """
- **Python** is the type of values in `to_pylist()` and in rows that programs write and read. A MAP is read as a list of
  pairs, and can also be written as a dict.
- **pandas**: by default the dtypes of `pd.read_fluss` are those of Arrow, written as `int64[pyarrow]`.
  `dtype_backend="numpy_nullable"` and `"numpy"` give others ([pandas](guide/pandas.md)).
- **Precision.** `TIMESTAMP(p)` and `TIMESTAMP_LTZ(p)` count seconds (p = 0), milliseconds (1 to 3), microseconds
  (4 to 6) or nanoseconds (7 to 9); the example has 6. Spark only has microseconds: finer times are cut, or read as
  numbers ([Spark](spark.md#reading)). Polars has neither seconds nor a TIME in milliseconds, and converts them
  without loss.
- **Zones.** `TIMESTAMP_LTZ` is a moment in time, `TIMESTAMP` a wall clock time without a zone. A `TIMESTAMP_LTZ` column
  takes a time without a zone as UTC; a `TIMESTAMP` column refuses a time with a zone
  ([decision 8](decisions/0008-time-zones.md)).

## Writing

Every engine writes the types above. Other types are converted if no value changes, and refused with a hint otherwise:

| written | becomes |
|---|---|
| unsigned integers | the next larger signed type; `uint64` becomes DECIMAL(20, 0) |
| whole numbers of 128 bits: `Int128` of Polars, `HUGEINT` of DuckDB | DECIMAL(38, 0); more digits are refused |
| `large_string`, `string_view`, dictionary, categorical | STRING |
| `large_list`, `list_view`, fixed-size lists | ARRAY |
| an integer in a column of another width | the same number, if it fits |
| a float in a FLOAT column, a decimal in a DOUBLE | the nearest number |
| durations, intervals, unions, `null`, Python objects | refused: cast them |

Programs write the type of a column as text (`"DECIMAL(10, 2) NOT NULL"`), as a Python type (`int`, `list[str]`,
`int | None`), as a type of Arrow, Polars, numpy or pandas, or with `fluss.DataTypes`.
"""

# One column of each type, with a value of it.
SAMPLES: Final[Mapping[str, Any]] = {
    "BOOLEAN": True,
    "TINYINT": 1,
    "SMALLINT": 1,
    "INT": 1,
    "BIGINT": 1,
    "FLOAT": 1.5,
    "DOUBLE": 1.5,
    "DECIMAL(10, 2)": Decimal("1.50"),
    "CHAR(3)": "abc",
    "STRING": "abc",
    "BINARY(2)": b"ab",
    "BYTES": b"ab",
    "DATE": date(2026, 1, 1),
    "TIME(3)": time(12, 30),
    "TIMESTAMP(6)": datetime(2026, 1, 1),  # noqa: DTZ001 - a wall clock
    "TIMESTAMP_LTZ(6)": datetime(2026, 1, 1, tzinfo=UTC),
    "ARRAY<INT>": [1],
    "MAP<STRING, INT>": [("a", 1)],
    "ROW<a INT, b STRING>": {"a": 1, "b": "x"},
}


def types_page() -> str:
    """Return the whole page."""
    samples = {parse_type(text): value for text, value in SAMPLES.items()}
    missing = {each.__name__ for each in DATA_TYPES} - {type(each).__name__ for each in samples}
    if missing:
        raise ValueError(f"docs/types.md has no example of {', '.join(sorted(missing))}")
    rows = [_row(data_type, value) for data_type, value in samples.items()]
    return _HEAD + "\n".join(rows) + "\n" + _TAIL


def _row(data_type: DataType, value: Any) -> str:
    arrow = to_arrow_type(data_type)
    table = pa.table({"x": pa.array([value], arrow)})
    cells = [f"`{data_type}`", *(f"`{engine(table)}`" for engine in _ENGINES)]
    return f"| {' | '.join(cells)} |"


def _python(table: pa.Table) -> str:
    return type(table["x"][0].as_py()).__name__


def _arrow(table: pa.Table) -> str:
    from fluss.pandas.read_frame import to_frame

    arrow = str(table.schema.field("x").type)
    dtype = str(to_frame(table, "pyarrow")["x"].dtype)
    if dtype != f"{arrow}[pyarrow]":
        raise ValueError(f"docs/types.md says that {arrow} is {arrow}[pyarrow] in pandas: {dtype}")
    return arrow


def _polars(table: pa.Table) -> str:
    import polars as pl

    dtype = str(pl.DataFrame(table).schema["x"])
    return re.sub(r"\b(?:time_unit|precision|scale)=|, time_zone=None|time_zone=", "", dtype)


def _duckdb(table: pa.Table) -> str:
    import duckdb

    # The connection of the process: each worker of the tests makes this page, and 19 take 0.4 s.
    return str(duckdb.from_arrow(table).types[0])


def _spark(table: pa.Table) -> str:
    from fluss_spark.spark_types import spark_type

    return spark_type(table.schema.field("x").type).simpleString()


_ENGINES: Final[tuple[Callable[[pa.Table], str], ...]] = (
    _python,
    _arrow,
    _polars,
    _duckdb,
    _spark,
)
