"""The texts of hints, by key and by the door or the frame in use.

A door is an interface of this package: a dialect, a session, an engine, the command line. A hint
that is right at every door is a plain text with its error. A hint that names a method, an option or
a type differs by door: a session has no `new_upsert`, and a user of Polars has no `column.cast`.
Such a hint is a `Hint` with a key, which has the texts. An error learns its door where
it leaves (`FlussError.add_context(door=...)`), and its hint is rendered then.

In the texts, braces hold facts of the hint, or an option of a scan with its value:
`{mode:changelog}` is `mode='changelog'` in Python and `option('mode', 'changelog')` in Spark.

There are two kinds of keys. What to *call* depends on the door. What to do with *data* depends on
the frame that was given, as far as the door shows frames to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, Final, Self


class Door(StrEnum):
    """The interface by which the caller uses this package."""

    CLIENT = "client"
    AIO = "aio"
    SESSION = "session"
    PANDAS = "pandas"
    POLARS = "polars"
    DUCKDB = "duckdb"
    SPARK = "spark"
    CLI = "cli"


class FrameKind(StrEnum):
    """The kind of data that the caller writes or reads."""

    ARROW = "arrow"
    ROWS = "rows"
    PANDAS = "pandas"
    POLARS = "polars"
    DUCKDB = "duckdb"
    SPARK = "spark"
    FILE = "file"


# A door without a text of its own uses the text of this one.
DOOR_FALL_BACKS: Final[Mapping[Door, Door]] = MappingProxyType(
    {
        Door.AIO: Door.CLIENT,
        Door.PANDAS: Door.SESSION,
        Door.POLARS: Door.SESSION,
        Door.DUCKDB: Door.SESSION,
    }
)
FRAME_FALL_BACKS: Final[Mapping[FrameKind, FrameKind]] = MappingProxyType(
    {FrameKind.ROWS: FrameKind.ARROW}
)
# The frames of doors whose callers hold no other; elsewhere the frame is the one that was given.
_FRAME_OF_DOOR: Final[Mapping[Door, FrameKind]] = MappingProxyType(
    {
        Door.PANDAS: FrameKind.PANDAS,
        Door.POLARS: FrameKind.POLARS,
        Door.DUCKDB: FrameKind.DUCKDB,
        Door.SPARK: FrameKind.SPARK,
        Door.CLI: FrameKind.FILE,
    }
)


def _everywhere(text: str) -> dict[Door, str]:
    """Return the same text for all doors; only options and facts differ."""
    return dict.fromkeys((Door.CLIENT, Door.SESSION, Door.SPARK, Door.CLI), text)


_OTHER_ROWS: Final = (
    "A repeated task must write the same rows in the same order: sort them, leave out values that "
    "differ from run to run, such as random numbers, or write into a primary-key table."
)
_THE_REST: Final = (
    "The first {first} rows are in the table. The rows error.progress.rows_to_write(), counted "
    "from 0 as they were given, are not: write those again."
)
_THE_REST_AND_LOOK: Final = (
    f"{_THE_REST} Those of error.progress.doubtful may be: look for them in the table first."
)

_POSITIONS: Final = (
    "write 'earliest', 'latest', an offset, {{bucket: offset}}, {{(partition, bucket): offset}}, "
    "a datetime with a zone, a time ago such as '-10m', or the cursor of a scan"
)


class HintKey(Enum):
    """Every key, with its texts: by door for what to call, by frame for what to do with data."""

    texts: Mapping[Any, str]

    def __new__(cls, texts: Mapping[Any, str]) -> Self:
        """Make a member of its texts."""
        key = object.__new__(cls)
        key._value_ = len(cls.__members__)
        key.texts = MappingProxyType(texts)
        return key

    @property
    def is_call(self) -> bool:
        """Whether the texts differ by door; they differ by frame otherwise."""
        return Door.CLIENT in self.texts

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (HintKey, self.name)

    # What to call.
    UPSERT_INSTEAD = {
        Door.CLIENT: "Use table.new_upsert(): it inserts, and replaces by key.",
        Door.SESSION: "Use session.upsert({table!r}, ...) or table.upsert(...): it inserts, "
        "and replaces by key.",
        Door.PANDAS: "Use df.fluss.upsert({table!r}): it inserts, and replaces by key.",
        Door.POLARS: "Use df.fluss.upsert({table!r}): it inserts, and replaces by key.",
        Door.DUCKDB: "Use fluss_duckdb.upsert({table!r}, ...): it inserts, and replaces by key.",
        Door.SPARK: "Leave operation out, or set option('operation', 'upsert'): it inserts, "
        "and replaces by key.",
        Door.CLI: "`fluss upsert {table} ...` and `fluss import {table} FILE` upsert.",
    }
    APPEND_INSTEAD = {
        Door.CLIENT: "Use table.new_append().",
        Door.SESSION: "Use session.append({table!r}, ...) or table.append(...).",
        Door.PANDAS: "Use df.fluss.append({table!r}).",
        Door.POLARS: "Use df.fluss.append({table!r}).",
        Door.DUCKDB: "Use fluss_duckdb.append({table!r}, ...).",
        Door.SPARK: "Leave operation out, or set option('operation', 'append').",
        Door.CLI: "`fluss insert {table} ...` and `fluss import {table} FILE` append.",
    }
    NO_KEY_TO_DELETE_BY = _everywhere(
        "single rows can only be deleted from tables with a primary key; 'table.log.ttl' removes old "
        "rows of a log"
    )
    NO_KEY_YET = {
        Door.CLIENT: "give the schema a primary key",
        Door.SESSION: "create the table with primary_key=['id'], for example",
        Door.SPARK: "create it with option('primaryKey', 'id'), for example",
        Door.CLI: "create it with --primary-key id, for example",
    }
    IGNORE_EXISTING = {
        Door.CLIENT: "ignore_if_exists=True leaves it as it is",
        Door.SESSION: "ignore_if_exists=True leaves it as it is",
        Door.SPARK: "ignore_if_exists=True leaves it as it is",
        Door.CLI: "--if-not-exists leaves it as it is",
    }
    DROP_WITH_TABLES = {
        Door.CLIENT: "cascade=True drops its tables as well",
        Door.SESSION: "cascade=True drops its tables as well",
        Door.SPARK: "cascade=True drops its tables as well",
        Door.CLI: "--cascade drops the tables in it as well",
    }
    LOG_IN = {
        Door.CLIENT: "This server requires a login: set 'security.sasl.username' and "
        "'security.sasl.password'.",
        Door.SESSION: "This server requires a login: fluss.connect('fluss://user@host:port'), with "
        "FLUSS_SASL_PASSWORD in the environment, or password=.",
        Door.SPARK: "This server requires a login: option('security.sasl.username', 'ali'), and "
        "FLUSS_SASL_PASSWORD in the environment.",
        Door.CLI: "This server requires a login: --url fluss://user@host:port, with "
        "FLUSS_SASL_PASSWORD in the environment, or a profile.",
    }
    TABLE_OF_SESSION = {
        Door.CLIENT: "a table has its connection already",
        Door.SESSION: "give a table of the session, session.table('database.table')",
        Door.PANDAS: "give a table of the session, pd.read_fluss(session.table('database.table')), "
        "or read inside `with session:`",
        Door.POLARS: "give a table of the session, "
        "pl.scan_fluss(session.table('database.table')), or scan inside `with session:`",
        Door.DUCKDB: "fluss_duckdb.connect(session=session) reads all tables with a session",
        Door.SPARK: "executors connect by themselves: option('bootstrap.servers', 'host:9123')",
        Door.CLI: "--url and --profile say how to connect",
    }
    CHANGELOG_OR_AS_OF = {
        Door.CLIENT: "use {mode:changelog} for its changes, or {as_of} for an earlier state",
        Door.SESSION: "use {mode:changelog} for its changes, or {as_of} for an earlier state",
        Door.SPARK: "load('db.table$changelog') has its changes, {as_of} an earlier state",
        Door.CLI: "use {mode:changelog} for its changes; an earlier state is for `fluss sql`",
    }
    OFFSETS_OF_BUCKETS = {
        Door.CLIENT: "write {{bucket: offset}}, or {{(partition, bucket): offset}} where the "
        "table is partitioned",
        Door.SESSION: "write {{bucket: offset}}, or {{(partition, bucket): offset}} where the "
        "table is partitioned",
        Door.SPARK: 'write {{"0": 17}} by bucket, or {{"partition/0": 17}} where the table is '
        "partitioned",
        Door.CLI: "one offset applies to all buckets",
    }
    OTHER_ROWS = {
        Door.CLIENT: _OTHER_ROWS,
        Door.SESSION: _OTHER_ROWS,
        Door.CLI: _OTHER_ROWS,
        Door.SPARK: "Values that differ from run to run are those of uuid(), of rand() without "
        "a seed, of a UDF that reads a clock, and the order after a shuffle "
        "(current_timestamp() stays the same). Where only values of some columns differ, "
        "option('mayDiffer', 'column, column') continues, and rows in the table keep theirs. "
        "Otherwise see 'When a query has written other rows' in docs/guide/exactly-once.md: "
        "it continues without duplicating or losing rows",
    }
    BEGIN_WHERE_THE_LOG_DOES = {
        Door.CLIENT: "EARLIEST_OFFSET reads from where the log begins",
        Door.SESSION: "{on_trimmed:earliest} begins there",
        Door.SPARK: "{on_trimmed:earliest} begins there",
        Door.CLI: "--start earliest begins there",
    }
    BEYOND_THE_END = {
        Door.CLIENT: "Compare what was read before with what the table has now. EARLIEST_OFFSET "
        "reads from the first row that is left, LATEST_OFFSET only new ones (from {log_end}).",
        Door.SESSION: "Compare what was read before with what the table has now. "
        "{start:earliest} reads the log from the first row that is left; a state can be read as of "
        "offset {log_end} or earlier.",
        Door.SPARK: "Compare what was read before with what the table has now. "
        "{start:earliest} reads the log from the first row that is left; a state can be read as of "
        "offset {log_end} or earlier.",
        Door.CLI: "Compare what was read before with what the table has now. {start:earliest} "
        "reads the log from the first row that is left.",
    }
    COLUMNS_OF_BINLOG = _everywhere(
        "{columns} selects columns of the rows before and after a change; they have {names}"
    )
    COUNT_CHANGES = _everywhere(
        "{mode:changelog} with {columns:[]} has one row for each row before and after a change"
    )
    CREATE_PARTITION = {
        Door.CLIENT: "Create it with admin.create_partition(...), or set "
        "'writer.dynamic-create-partition.enabled' to true.",
        Door.SESSION: "Create it with session.table({table!r}).create_partition(...), or set "
        "'writer.dynamic-create-partition.enabled' to true.",
        Door.SPARK: "Create it beforehand, or set "
        "option('writer.dynamic-create-partition.enabled', 'true').",
        Door.CLI: "Create it with `fluss partitions add {table} key=value`, or set "
        "'writer.dynamic-create-partition.enabled' to true in the profile.",
    }
    CURSOR_OF_A_SCAN = _everywhere("pass the result of scan.cursor(), or its JSON text")
    FILTER_BINLOG = {
        Door.CLIENT: "filter the result of the scan, or use {mode:changelog}; start and end select "
        "a range of a binlog",
        Door.SESSION: "filter the result of the scan, or use {mode:changelog}; start and end "
        "select a range of a binlog",
        Door.SPARK: "use .where(...) on the frame, or load('db.table$changelog'); start and end "
        "select a range of a binlog",
        Door.CLI: "use {mode:changelog}; --start and --end select a range of a binlog",
    }
    FOLLOW_THE_OTHERS = {
        Door.CLIENT: "Unsubscribe from its buckets to continue with the others.",
        Door.SESSION: "Follow with {missing_partitions:skip} to continue with the others.",
        Door.SPARK: "Load it with {missing_partitions:skip} to continue with the others.",
        Door.CLI: "Run it again to continue with the others.",
    }
    GET_TABLE_AGAIN = {
        Door.CLIENT: "Get the table from the connection again, and write with a new writer.",
        Door.SESSION: "Get the table again with session.table({table!r}), and write to that.",
        Door.SPARK: "Run the query again.",
        Door.CLI: "Run the command again.",
    }
    LIST_DATABASES = {
        Door.CLIENT: "admin.list_databases() lists them",
        Door.SESSION: "session.databases() lists them",
        Door.SPARK: "`fluss ls` lists them",
        Door.CLI: "`fluss ls` lists them",
    }
    LIST_PARTITIONS = {
        Door.CLIENT: "admin.list_partition_infos({table!r}) lists the existing ones.",
        Door.SESSION: "session.table({table!r}).partitions() lists the existing ones.",
        Door.SPARK: "`fluss ls {table}` lists the existing ones.",
        Door.CLI: "`fluss ls {table}` lists the existing ones.",
    }
    METADATA_OF_CHANGES = _everywhere(
        "{mode:changelog} reads the changes; a state has _bucket and _partition, too"
    )
    NAME_PARTITION = {
        Door.CLIENT: "Write the value as Fluss names the partition; "
        "admin.list_partition_infos(...) shows names.",
        Door.SESSION: "Write the value as Fluss names the partition; table.partitions() shows "
        "names.",
        Door.SPARK: "Write the value as Fluss names the partition; `fluss ls` shows names.",
        Door.CLI: "Write the value as Fluss names the partition; `fluss ls` shows names.",
    }
    NAME_TABLE = {
        Door.CLIENT: "name it: connection.get_table('database.table')",
        Door.SESSION: "name it: session.table('database.table')",
        Door.PANDAS: "name it: pd.read_fluss('database.table')",
        Door.POLARS: "name it: pl.scan_fluss('database.table')",
        Door.DUCKDB: "name it: fluss('database.table')",
        Door.SPARK: "name it: .load('database.table'), .save('database.table')",
        Door.CLI: "name it: database.table",
    }
    OPEN_SESSION = {
        Door.CLIENT: "Open one: fluss.connect(...)",
        Door.SESSION: "Open one: fluss.connect(...)",
        Door.DUCKDB: "Open one: fluss_duckdb.connect(...)",
        Door.SPARK: "Run the query again.",
        Door.CLI: "Run the command again.",
    }
    OTHER_METADATA_NAMES = _everywhere(
        "choose other names for the metadata, for example {metadata_prefix:__}"
    )
    PARTITION_CHOICE = {
        Door.CLIENT: "write a partition's name, 'key=value', or {{'key': value}}",
        Door.SESSION: "write a partition's name, 'key=value', or {{'key': value}}",
        Door.SPARK: "write a partition's name, or 'key=value'",
        Door.CLI: "write --partition key=value",
    }
    READ_WITHOUT_LAKE = _everywhere("{advice}{lake:off} reads what Fluss itself holds.")
    READ_WHAT_IS_THERE = {
        Door.CLIENT: "Rows that only a lake still has are not in the log; EARLIEST_OFFSET reads the "
        "rows of the log.",
        Door.SESSION: "Rows that only a lake still has are not in the log; {start:earliest} "
        "reads the rows of the log.",
        Door.SPARK: "Rows that only a lake still has are not in the log; {start:earliest} "
        "reads the rows of the log.",
        Door.CLI: "Rows that only a lake still has are not in the log; {start:earliest} reads "
        "the rows of the log.",
    }
    SAY_ZONE = {
        Door.CLIENT: "name the zone: value.replace(tzinfo=timezone.utc), '2026-01-01T00:00:00Z'",
        Door.SESSION: "name the zone: value.replace(tzinfo=timezone.utc), '2026-01-01T00:00:00Z'",
        Door.DUCKDB: "name the zone: '2026-01-01T00:00:00Z'",
        Door.SPARK: "name the zone: '2026-01-01T00:00:00Z'",
        Door.CLI: "name the zone: 2026-01-01T00:00:00Z",
    }
    SCAN_POSITION = {
        Door.CLIENT: _POSITIONS,
        Door.SESSION: f"{_POSITIONS}; table.offsets() gives all offsets",
        Door.SPARK: "write earliest, latest, an offset, 2026-01-31T12:00:00Z, -10m (a time ago), "
        "or the cursor of a scan",
        Door.CLI: "write earliest, latest, an offset, 2026-01-31T12:00:00Z, -10m (a time ago), or "
        "@FILE with a cursor",
    }
    SKIP_MISSING_PARTITIONS = {
        Door.CLIENT: "{missing_partitions:skip} reads the existing ones",
        Door.SESSION: "{missing_partitions:skip} reads the existing ones",
        Door.SPARK: "{missing_partitions:skip} reads the existing ones",
        Door.CLI: "`fluss ls {table}` lists the existing ones",
    }
    START_AT_EARLIEST = _everywhere("Start again with {start:earliest}.")
    TRIMMED_BEFORE_READ = {
        Door.CLIENT: "EARLIEST_OFFSET reads from the first row that is left ({earliest}), "
        "LATEST_OFFSET only new ones (from {latest}); 'table.log.ttl' sets how long rows are "
        "kept.",
        Door.SESSION: "Scan again with {on_trimmed:earliest} to begin with the first row "
        "that is left ({earliest}); 'table.log.ttl' sets how long rows are kept.",
        Door.SPARK: "Load it again with {on_trimmed:earliest} to begin with the first row "
        "that is left ({earliest}); 'table.log.ttl' sets how long rows are kept.",
        Door.CLI: "Run it again with {start:earliest} to begin with the first row that is left "
        "({earliest}); 'table.log.ttl' sets how long rows are kept.",
    }
    WRITE_ALL_AGAIN = _everywhere(
        "Write all rows again: those that are in the table do not change."
    )
    WRITE_NOTHING_IS_THERE = _everywhere(
        "None of the rows is in the table: write all of them again."
    )
    WRITE_THE_REST = {
        Door.CLIENT: _THE_REST,
        Door.SESSION: _THE_REST,
        Door.SPARK: "Write the frame again without the first {first} rows.",
        Door.CLI: "The first {first} of these rows are in the table; writing the file again "
        "would add them once more.",
    }
    WRITE_THE_REST_AND_LOOK = {
        Door.CLIENT: _THE_REST_AND_LOOK,
        Door.SESSION: _THE_REST_AND_LOOK,
        Door.SPARK: "The first {first} rows are in the table; look for those after them "
        "before the frame is written again.",
        Door.CLI: "The first {first} of these rows are in the table; look for those after "
        "them before the file is written again.",
    }
    WRITE_PREDICATE = {
        Door.CLIENT: 'write one with col(), for example col("id") > 5, with '
        "pyarrow.compute.field(), or as SQL: \"id > 5 AND kind = 'a'\"",
        Door.SESSION: "write SQL, for example \"id > 5 AND kind = 'a'\", or use fluss.col(): "
        'fluss.col("id") > 5',
        Door.POLARS: "write SQL, for example \"id > 5 AND kind = 'a'\", or use fluss.col(); "
        "conditions of Polars belong into .filter(...)",
        Door.DUCKDB: "write filter := 'id > 5', or WHERE id > 5 after fluss(...), or give "
        'fluss.col("id") > 5 to Connection.fluss()',
        Door.SPARK: "write id > 5 AND kind = 'a', or .where(...) on the frame",
        Door.CLI: "write id > 5 AND kind = 'a'",
    }
    # What to do with data.
    ADD_COLUMN = {
        FrameKind.ARROW: "add it: batch.append_column({column!r}, values)",
        FrameKind.ROWS: "give {column!r} in each row",
        FrameKind.PANDAS: "add it: df[{column!r}] = ...",
        FrameKind.POLARS: "add it: df.with_columns({column}=...)",
        FrameKind.DUCKDB: 'add it: SELECT *, ... AS "{column}"',
        FrameKind.SPARK: "add it: .withColumn({column!r}, ...)",
        FrameKind.FILE: "add the column {column!r} to the file",
    }
    ADD_COLUMN_OF_NULLS = {
        FrameKind.ARROW: "add it, as NULL where there is no value: "
        "batch.append_column({column!r}, pa.nulls(len(batch)))",
        FrameKind.ROWS: "give {column!r} in each row, as None where there is no value",
        FrameKind.PANDAS: "add it, as NULL where there is no value: df[{column!r}] = None",
        FrameKind.POLARS: "add it, as NULL where there is no value: "
        "df.with_columns(pl.lit(None).alias({column!r}))",
        FrameKind.DUCKDB: 'add it, as NULL where there is no value: SELECT *, NULL AS "{column}"',
        FrameKind.SPARK: "add it, as NULL where there is no value: "
        ".withColumn({column!r}, lit(None).cast({spark!r}))",
        FrameKind.FILE: "add the column {column!r} to the file, empty where there is no value",
    }
    CAST_COLUMN = {
        FrameKind.ARROW: "cast the column: column.cast({arrow})",
        FrameKind.ROWS: "give values of another type; {column!r} is {type}",
        FrameKind.PANDAS: "cast the column: df.astype({{{column!r}: {pandas}}})",
        FrameKind.POLARS: "cast the column: df.with_columns(pl.col({column!r}).cast({polars}))",
        FrameKind.DUCKDB: 'cast the column: CAST("{column}" AS {duckdb})',
        FrameKind.SPARK: "cast the column: .withColumn({column!r}, "
        "col({column!r}).cast({spark!r}))",
        FrameKind.FILE: "the column {column!r} of the file must hold values of {type}",
    }
    FILL_NULL = {
        FrameKind.ARROW: "fill it, column.fill_null(...), or leave such rows out",
        FrameKind.ROWS: "give it a value, or leave the row out",
        FrameKind.PANDAS: "fill it, df[{column!r}].fillna(...), or leave such rows out, "
        "df.dropna(subset={column!r})",
        FrameKind.POLARS: "fill it, pl.col({column!r}).fill_null(...), or leave such rows out, "
        "df.drop_nulls({column!r})",
        FrameKind.DUCKDB: 'fill it, coalesce("{column}", ...), or leave such rows out, '
        'WHERE "{column}" IS NOT NULL',
        FrameKind.SPARK: "before writing, leave such rows out with .where(...), or fill them with "
        "coalesce(...)",
        FrameKind.FILE: "the column {column!r} of the file must have a value in every row",
    }
    GIVE_NESTED = {
        FrameKind.ARROW: "make the column {arrow}",
        FrameKind.ROWS: "give a list, a dict or a tuple for {type}",
        FrameKind.PANDAS: "make the column {pandas}",
        FrameKind.POLARS: "make the column {polars}",
        FrameKind.DUCKDB: "make the column {duckdb}",
        FrameKind.SPARK: "make the column {spark}",
        FrameKind.FILE: "the column {column!r} of the file must hold values of {type}",
    }
    GIVE_TYPE = {
        FrameKind.ARROW: "give the column a type: column.cast(pa.string())",
        FrameKind.PANDAS: "give the column a type: df.astype({{{column!r}: 'string'}})",
        FrameKind.POLARS: "give the column a type: "
        "df.with_columns(pl.col({column!r}).cast(pl.String))",
        FrameKind.DUCKDB: 'give the column a type: CAST("{column}" AS VARCHAR)',
        FrameKind.SPARK: "give the column a type: .withColumn({column!r}, "
        "col({column!r}).cast('string'))",
        FrameKind.FILE: "the file must hold a value of the column {column!r}, or the table "
        "must exist before",
    }
    MAKE_TIMES = {
        FrameKind.ARROW: "make times of the column: column.cast({arrow})",
        FrameKind.PANDAS: "make times of the column: "
        "df.assign(**{{{column!r}: pd.to_datetime(df[{column!r}])}})",
        FrameKind.POLARS: "make times of the column: "
        "df.with_columns(pl.col({column!r}).cast({polars})), or .str.to_datetime() of text",
        FrameKind.DUCKDB: 'make times of the column: CAST("{column}" AS {duckdb})',
        FrameKind.SPARK: "make times of the column: .withColumn({column!r}, "
        "col({column!r}).cast({spark!r}))",
        FrameKind.FILE: "the column {column!r} of the file must hold times, such as "
        "2026-01-01T00:00:00",
    }
    ONE_KIND = {
        FrameKind.ARROW: "give an Arrow array with an explicit type: pa.array(values, type)",
        FrameKind.ROWS: "give values of one kind, for example texts: str(value)",
        FrameKind.PANDAS: "make them one kind, for example texts: "
        "df.astype({{{column!r}: 'string'}})",
        FrameKind.POLARS: "give values of one kind: pl.Series({column!r}, values, dtype=...)",
        FrameKind.DUCKDB: 'make them one kind, for example texts: CAST("{column}" AS VARCHAR)',
        FrameKind.SPARK: "make them one kind, for example texts: col({column!r}).cast('string')",
        FrameKind.FILE: "the column {column!r} of the file must hold values of one kind",
    }
    WRITE_DAY = {
        FrameKind.ARROW: "write a date, value.date(), or make the column a TIMESTAMP",
        FrameKind.PANDAS: "write days: df[{column!r}].dt.date, or make the column a TIMESTAMP",
        FrameKind.POLARS: "write days: pl.col({column!r}).dt.date(), or make the column a "
        "TIMESTAMP",
        FrameKind.DUCKDB: 'write days: CAST("{column}" AS DATE), or make the column a TIMESTAMP',
        FrameKind.SPARK: "write days: .withColumn({column!r}, col({column!r}).cast('date')), "
        "or make the column a TIMESTAMP",
        FrameKind.FILE: "write days such as 2026-01-01, or make the column a TIMESTAMP",
    }
    WRITE_WALL_CLOCK_TIMES = {
        FrameKind.ARROW: "write wall clock times: pa.compute.local_timestamp(column), or make "
        "the column a TIMESTAMP_LTZ",
        FrameKind.ROWS: "write a wall clock time: value.replace(tzinfo=None), or make the "
        "column a TIMESTAMP_LTZ",
        FrameKind.PANDAS: "write wall clock times: df[{column!r}].dt.tz_localize(None), or "
        "make the column a TIMESTAMP_LTZ",
        FrameKind.POLARS: "write wall clock times: "
        "pl.col({column!r}).dt.replace_time_zone(None), or make the column a TIMESTAMP_LTZ",
        FrameKind.DUCKDB: 'write wall clock times: CAST("{column}" AS TIMESTAMP), or make '
        "the column a TIMESTAMP_LTZ",
        FrameKind.SPARK: "write wall clock times: .withColumn({column!r}, "
        "col({column!r}).cast('timestamp_ntz')), or make the column a TIMESTAMP_LTZ",
        FrameKind.FILE: "leave the zone out of the column {column!r} of the file, or make the "
        "column a TIMESTAMP_LTZ",
    }
    # Wall clock times of an engine that has a zone for them, for a column of moments.
    GIVE_ZONE = {
        FrameKind.ARROW: "Give {column!r} a zone: pyarrow.compute.assume_timezone(column, 'UTC').",
        FrameKind.PANDAS: "Give {column!r} a zone: df[{column!r}].dt.tz_localize('UTC').",
        FrameKind.POLARS: "Give {column!r} a zone: pl.col({column!r}).dt.replace_time_zone('UTC').",
        FrameKind.DUCKDB: 'Cast it, by the TimeZone of the session: CAST("{column}" AS '
        "TIMESTAMPTZ); or name a zone: \"{column}\" AT TIME ZONE 'UTC'.",
        FrameKind.SPARK: "Cast it, by the time zone of the session: .withColumn({column!r}, "
        "col({column!r}).cast('timestamp')).",
        FrameKind.FILE: "Write the times of {column!r} with a zone.",
    }


class Hint:
    """A hint by key, with the facts its texts name.

    Args:
        key: Names its texts.
        facts: What stands in braces in the texts.
    """

    __slots__ = ("facts", "key")

    def __init__(self, key: HintKey, **facts: Any) -> None:
        self.key = key
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hint) and (self.key, self.facts) == (other.key, other.facts)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Hint({self.key.name}, {self.facts})"


def render(hint: str | Hint, door: Door | None = None, frame: FrameKind | None = None) -> str:
    """Return the text of a hint.

    Args:
        hint: A text, or a key with its facts.
        door: The door; the documented dialect where none is known.
        frame: The kind of frame that the caller gave; Arrow where none is known.
    """
    if isinstance(hint, str):
        return hint
    door = door or Door.CLIENT
    return _text_of(hint.key, door, frame).format_map(_Facts(hint.facts, door))


class _Facts(dict[str, Any]):
    """The facts of a hint; other names are options of a scan, written as the door takes them."""

    def __init__(self, facts: Mapping[str, Any], door: Door) -> None:
        super().__init__(facts)
        self._door = door

    def __missing__(self, name: str) -> _Option:
        return _Option(name, self._door)


class _Option:
    """`{mode:changelog}` in a text: `mode='changelog'`, `option('mode', 'changelog')` and so on."""

    def __init__(self, name: str, door: Door) -> None:
        self._name = name
        self._door = door

    def __format__(self, value: str) -> str:
        name, door = self._name, self._door
        written = value if value.startswith("[") else repr(value)
        if door is Door.SPARK:
            return f"option({name!r}, {written if value else '...'})"
        if door is Door.CLI and name in _CLI_OPTIONS:
            return f"--{name} {value or '...'}"
        if door in {Door.DUCKDB, Door.CLI}:  # what no command offers, `fluss sql` does
            return f"{name} := {written if value else '...'}"
        return f"{name}={written if value else ''}"


_CLI_OPTIONS: Final = frozenset({"columns", "start", "end", "mode", "lake"})


def _text_of(key: HintKey, door: Door, frame: FrameKind | None) -> str:
    texts = key.texts
    if key.is_call:
        return texts[door] if door in texts else texts[DOOR_FALL_BACKS[door]]
    kind = _FRAME_OF_DOOR.get(door) or frame or FrameKind.ARROW
    return texts[kind] if kind in texts else texts[FRAME_FALL_BACKS[kind]]
