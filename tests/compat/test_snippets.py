"""Every snippet of the documented Python interface runs on `fluss` with the documented effect.

The snippets are in `snippets/`, one page per document; a snippet of two documents is listed once.
Each runs in a database of its own, which is prepared as the earlier text of its document does, and
the test checks the result.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import fluss
from tests.support.snippets import Snippet, run_code, snippets_of

PAGES = sorted((Path(__file__).parent / "snippets").glob("*.md"))
EVERYTHING = [each for page in PAGES for each in snippets_of(page)]
PROGRAMS = [each for each in EVERYTHING if each.scene == "a program"]
SNIPPETS = [each for each in EVERYTHING if each not in PROGRAMS]
EVENTS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("score", pa.float32())])
USERS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("age", pa.int64())])
REGIONS = pa.schema([("id", pa.int32()), ("region", pa.string()), ("value", pa.int64())])
ROWS = pa.table({"id": [1, 2], "name": ["Alice", "Bob"], "score": [95.5, 87.0]}, EVENTS)

Names = dict[str, Any]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda each: each.name)
async def test_a_snippet_has_the_documented_effect(snippet, cluster, database, capsys):
    code = snippet.placed(
        bootstrap=cluster.bootstrap, database=database, other_database=f"{database}_mine"
    )
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with await fluss.FlussConnection.create(config) as conn:
        admin = await conn.get_admin()
        names: Names = {"fluss": fluss, "pa": pa, "config": config, "conn": conn, "admin": admin}
        await set_scene(snippet, names, database)
        await run_code(code, names)
        names["printed"] = capsys.readouterr().out
        try:
            await LOOKS[snippet.name](names)
        finally:
            await admin.drop_database(f"{database}_mine", ignore_if_not_exists=True)
            if names["conn"] is not conn:
                names["conn"].close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_a_program_of_the_documents_prints_its_rows(program, cluster, database):
    code = program.placed(
        bootstrap=cluster.bootstrap, database=database, other_database=f"{database}_mine"
    )
    command = [sys.executable, "-c", code]
    # Longer than the client waits for a leader, so that its error is shown.
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [
        ["0", "1", "Alice", "95.5"],
        ["1", "2", "Bob", "87.0"],
    ]


def test_every_snippet_is_checked():
    assert {each.name for each in SNIPPETS} == set(LOOKS)
    assert len(EVERYTHING) == len({each.name for each in EVERYTHING})


# --- preparations for snippets --------------------------------------------------------------------


async def set_scene(snippet: Snippet, names: Names, database: str) -> None:
    """Create the objects that a snippet assumes."""
    scene, _, amount = snippet.scene.partition(" with ")
    admin = names["admin"]
    if scene == "nothing":
        return
    if scene == "my database":
        await admin.create_database(f"{database}_mine")
        return
    name, schema, descriptor = TABLES[scene]
    names["table_path"] = path = fluss.TablePath(database, name)
    names["table_descriptor"] = fluss.TableDescriptor(schema, **descriptor)
    await admin.create_table(path, names["table_descriptor"])
    names["num_buckets"] = 1
    names["table"] = table = await names["conn"].get_table(path)
    if "partition_keys" in descriptor:
        for region in ("US", "EU"):
            await admin.create_partition(path, {"region": region})
        names["partition_infos"] = await admin.list_partition_infos(path)
    names |= {"pa_table": ROWS, "record_batch": ROWS.to_batches()[0], "df": frame_of(ROWS)}
    if amount == "rows":
        await fill(table)
    if scene == "events":
        scan = table.new_scan()
        reads_records = snippet.page == "002"
        create = scan.create_log_scanner if reads_records else scan.create_record_batch_log_scanner
        names["scanner"] = await create()
        names["scanner"].subscribe(0, fluss.EARLIEST_OFFSET)


TABLES: dict[str, tuple[str, fluss.Schema, dict[str, Any]]] = {
    "events": ("events", fluss.Schema(EVENTS), {"bucket_count": 1}),
    "events in two buckets": ("events", fluss.Schema(EVENTS), {"bucket_count": 2}),
    "users": ("users", fluss.Schema(USERS, primary_keys=["id"]), {"bucket_count": 3}),
    "partitioned events": (
        "partitioned_events",
        fluss.Schema(REGIONS),
        {"partition_keys": ["region"], "bucket_count": 1},
    ),
}


async def fill(table: fluss.FlussTable) -> None:
    """Write two rows, as in the documents."""
    if table.has_primary_key():
        upsert = table.new_upsert().create_writer()
        upsert.upsert({"id": 1, "name": "Alice", "age": 25})
        await upsert.flush()
        return
    writer = table.new_append().create_writer()
    if table.get_table_info().is_partitioned():
        writer.append({"id": 1, "region": "US", "value": 100})
        writer.append({"id": 2, "region": "EU", "value": 200})
    else:
        writer.write_arrow(ROWS)
    await writer.flush()


def frame_of(rows: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = rows.to_pandas()
    return frame


# --- checks of the results ------------------------------------------------------------------------


async def events_are_there(names: Names) -> None:
    info = await names["admin"].get_table_info(names["table_path"])
    assert info.get_schema().get_columns() == [
        ("id", "int"),
        ("name", "string"),
        ("score", "float"),
    ]
    assert not info.has_primary_key()


async def nine_rows_are_written(names: Names) -> None:
    scanner = await names["table"].new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    found = scanner.to_arrow().column("name").to_pylist()
    assert found == ["Alice", "Bob", "Charlie", *["Alice", "Bob"] * 3]


async def both_frames_have_the_rows(names: Names) -> None:
    assert names["arrow_table"].equals(ROWS)
    pd.testing.assert_frame_equal(names["df"], frame_of(ROWS))


async def rows_are_printed(names: Names) -> None:
    assert names["result"].equals(ROWS)
    printed = names["printed"]
    assert "offset=0, change=+A, row={'id': 1, 'name': 'Alice', 'score': 95.5}" in printed
    assert "offset=1, change=+A, row={'id': 2, 'name': 'Bob', 'score': 87.0}" in printed


async def rows_are_printed_by_bucket(names: Names) -> None:
    await rows_are_printed(names)
    await buckets_are_printed(names)


async def buckets_are_printed(names: Names) -> None:
    assert "bucket=0, offset=1, row={'id': 2, 'name': 'Bob', 'score': 87.0}" in names["printed"]
    assert names["scan_records"][0].row == ROWS.to_pylist()[0]
    assert names["scan_records"][-1].row == ROWS.to_pylist()[1]
    assert [each.row for each in names["scan_records"][:5]] == ROWS.to_pylist()


async def nothing_is_subscribed(names: Names) -> None:
    assert names["scanner"].get_subscribed_buckets() == []
    assert names["scanner"].poll_arrow(timeout_ms=50).num_rows == 0


async def only_new_rows_are_read(names: Names) -> None:
    writer = names["table"].new_append().create_writer()
    await writer.append({"id": 3, "name": "new", "score": 1.0}).wait()
    assert names["scanner"].poll_arrow(timeout_ms=5000).column("id").to_pylist() == [3]


async def only_new_records_are_read(names: Names) -> None:
    writer = names["table"].new_append().create_writer()
    await writer.append({"id": 3, "name": "new", "score": 1.0}).wait()
    assert [each.row["id"] for each in names["scanner"].poll(timeout_ms=5000)] == [3]


async def only_two_columns_are_read(names: Names) -> None:
    names["scanner"].subscribe(0, fluss.EARLIEST_OFFSET)
    assert names["scanner"].to_arrow().equals(ROWS.select(["id", "score"]))


async def it_is_connected(names: Names) -> None:
    assert await (await names["conn"].get_admin()).database_exists("fluss")


async def it_is_closed(names: Names) -> None:
    with pytest.raises(fluss.FlussError, match="closed"):
        await (await names["conn"].get_admin()).list_databases()


async def it_administers(names: Names) -> None:
    assert "fluss" in await names["admin"].list_databases()


async def a_database_came_and_went(names: Names) -> None:
    assert names["exists"] is True
    (mine,) = [each for each in names["databases"] if each.endswith("_mine")]
    assert not await names["admin"].database_exists(mine)


async def a_table_came_and_went(names: Names) -> None:
    assert names["table_info"].get_column_names() == ["id", "name", "amount"]
    assert names["tables"] == ["my_table"]
    assert not await names["admin"].table_exists(names["table_path"])


async def offsets_are_zero(names: Names) -> None:
    assert names["offsets"] == {0: 0}


async def an_offset_is_one(names: Names) -> None:
    assert names["offsets"] == {0: 1}


async def users_are_there(names: Names) -> None:
    info = await names["admin"].get_table_info(names["table_path"])
    assert (info.get_primary_keys(), info.num_buckets) == (["id"], 3)


async def alice_is_found_and_bob_is_gone(names: Names) -> None:
    assert names["printed"] == "Found: name=Alice, age=25\n"
    assert await names["lookuper"].lookup({"id": 2}) is None
    assert await names["lookuper"].lookup({"id": 3}) == {"id": 3, "name": "Charlie", "age": 35}


async def only_the_age_is_new(names: Names) -> None:
    found = await names["table"].new_lookup().lookup({"id": 1})
    assert found == {"id": 1, "name": "Alice", "age": 27}


async def there_are_two_partitions(names: Names) -> None:
    assert sorted(each.partition_name for each in names["partition_infos"]) == ["EU", "US"]


async def each_row_is_in_its_partition(names: Names) -> None:
    for name in ("US", "EU"):
        offsets = await names["admin"].list_partition_offsets(
            names["table_path"], name, [0], fluss.OffsetSpec.latest()
        )
        assert offsets == {0: 1}


async def both_partitions_are_printed(names: Names) -> None:
    lines = [line.split()[1:] for line in names["printed"].splitlines()[1:]]
    assert sorted(lines) == [["1", "US", "100"], ["2", "EU", "200"]]


async def the_row_is_found(names: Names) -> None:
    assert names["result"] == {"user_id": 1, "region": "US", "score": 1234}


async def the_error_is_told(names: Names) -> None:
    assert names["printed"].startswith("Fluss error: ")
    assert "events" in names["printed"]


Look = Callable[[Names], Any]
LOOKS: dict[str, Look] = {
    "000: create": events_are_there,
    "000: write": nine_rows_are_written,
    "000: read everything": both_frames_have_the_rows,
    "000: poll": rows_are_printed_by_bucket,
    "000: unsubscribe": nothing_is_subscribed,
    "000: latest": only_new_rows_are_read,
    "000: project": only_two_columns_are_read,
    "001: poll": rows_are_printed,
    "001: latest": only_new_rows_are_read,
    "002: records": buckets_are_printed,
    "002: latest": only_new_records_are_read,
    "003: connect": it_is_connected,
    "003: connect in a context": it_is_closed,
    "003: admin": it_administers,
    "003: databases": a_database_came_and_went,
    "003: tables": a_table_came_and_went,
    "003: offsets": offsets_are_zero,
    "003: offsets of a partition": an_offset_is_one,
    "003: write": nine_rows_are_written,
    "003: read everything": both_frames_have_the_rows,
    "003: poll": rows_are_printed,
    "003: latest": only_new_rows_are_read,
    "003: project": only_two_columns_are_read,
    "003: create with a key": users_are_there,
    "003: upsert, delete, look up": alice_is_found_and_bob_is_gone,
    "003: partial update": only_the_age_is_new,
    "003: create with partitions": there_are_two_partitions,
    "003: write partitions": each_row_is_in_its_partition,
    "003: read partitions": both_partitions_are_printed,
    "003: partitions with a key": the_row_is_found,
    "003: errors": the_error_is_told,
}
