"""The catalog: rules of creation, ids that are never reused, persistence."""

import pytest

from fluss.errors import FlussError, LocalServerError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.partitions import PartitionSpec
from fluss.model.types.factory import DataTypes
from fluss.wire import messages as pb
from fluss_server.catalog.alteration import altered_table
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_store import CatalogStore
from fluss_server.catalog.creation import check_table, read_descriptor, with_defaults

PATH = TablePath("shop", "orders")
KEYED = (
    Schema.builder()
    .column("id", DataTypes.int())
    .column("day", DataTypes.string())
    .column("total", DataTypes.bigint())
    .primary_key(["id", "day"])
    .build()
)
PLAIN = Schema.builder().column("id", DataTypes.int()).column("day", DataTypes.string()).build()


@pytest.fixture
def open_catalog(tmp_path):
    opened = []

    def open_catalog():
        while opened:
            opened.pop().close()
        opened.append(Catalog(CatalogStore(tmp_path / "catalog.sqlite")))
        return opened[-1]

    yield open_catalog
    while opened:
        opened.pop().close()


def refusal_of(table: TableDescriptor) -> int:
    with pytest.raises(FlussError) as refused:
        check_table(with_defaults(table))
    return refused.value.error_code


def test_everything_is_there_after_a_restart(open_catalog):
    catalog = open_catalog()
    catalog.create_database("shop", DatabaseDescriptor("for sale", {"a": "b"}), now_ms=5)
    table = with_defaults(TableDescriptor(KEYED, partition_keys=["day"], bucket_count=3))
    made = catalog.create_table(PATH, table, now_ms=6)
    spec = PartitionSpec({"day": "monday"})
    partition = catalog.create_partition(made, "monday", spec)
    again = open_catalog()
    assert again.database("shop").descriptor.comment == "for sale"
    assert again.table(PATH).descriptor == made.descriptor
    assert again.table(PATH).info == made.info
    assert again.partitions_of(again.table(PATH)) == [partition]


def test_numbers_are_never_assigned_twice(open_catalog):
    catalog = open_catalog()
    catalog.create_database("shop", DatabaseDescriptor(), now_ms=1)
    first = catalog.create_table(PATH, with_defaults(TableDescriptor(PLAIN)), now_ms=1).table_id
    writers = [catalog.next_writer_id() for _ in range(3)]
    assert writers == [0, 1, 2]
    catalog.drop_table(PATH)
    again = open_catalog()
    second = again.create_table(PATH, with_defaults(TableDescriptor(PLAIN)), now_ms=1).table_id
    assert second > first
    assert again.next_writer_id() not in writers
    assert again.take_numbers(1, 0, 100) == 0
    assert again.take_numbers(1, 0, 100) == 100


def test_a_dropped_table_lists_its_files_for_deletion(open_catalog):
    catalog = open_catalog()
    catalog.create_database("shop", DatabaseDescriptor(), now_ms=1)
    made = catalog.create_table(PATH, with_defaults(TableDescriptor(PLAIN)), now_ms=1)
    catalog.drop_database("shop")
    again = open_catalog()
    assert again.pending_deletions() == [again.directory_of(made, None)]
    again.deletion_done(again.pending_deletions()[0])
    assert again.pending_deletions() == []


def test_a_change_that_fails_half_way_changes_nothing(open_catalog, monkeypatch):
    catalog = open_catalog()
    catalog.create_database("shop", DatabaseDescriptor(), now_ms=1)
    monkeypatch.setattr(catalog, "_write_schema", None)
    with pytest.raises(TypeError):
        catalog.create_table(PATH, with_defaults(TableDescriptor(PLAIN)), now_ms=1)
    assert catalog.find_table(PATH) is None
    assert open_catalog().find_table(PATH) is None


@pytest.mark.parametrize("garbage", [b"x" * 5_000, b"SQLite format 3\x00" + b"\xff" * 5_000])
def test_a_file_that_is_no_catalog_is_named(tmp_path, garbage):
    (tmp_path / "catalog.sqlite").write_bytes(garbage)
    with pytest.raises(LocalServerError, match=r"catalog\.sqlite"):
        CatalogStore(tmp_path / "catalog.sqlite")


# --- defaults and refusals ----------------------------------------------------------------------


def test_a_table_gets_the_defaults_of_fluss():
    made = with_defaults(
        TableDescriptor(KEYED, properties={"table.merge-engine": "versioned"}),
        default_buckets=4,
    )
    assert made.bucket_count == 4
    assert made.bucket_keys == ("id", "day")
    assert dict(made.properties) == {
        "table.merge-engine": "versioned",
        "table.replication.factor": "1",
        "table.delete.behavior": "IGNORE",
        "table.kv.format-version": "2",
    }


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (TableDescriptor(PLAIN, properties={"table.no-such": "1"}), 39),
        (TableDescriptor(PLAIN, properties={"other": "1"}), 39),
        (TableDescriptor(PLAIN, properties={"table.log.ttl": "soon"}), 39),
        (TableDescriptor(PLAIN, properties={"table.merge-engine": "first_row"}), 39),
        (TableDescriptor(PLAIN, properties={"table.delete.behavior": "ignore"}), 39),
        (TableDescriptor(PLAIN, properties={"table.auto-partition.enabled": "true"}), 39),
        (TableDescriptor(KEYED, log_format="INDEXED"), 39),
        (TableDescriptor(PLAIN, bucket_count=128_001), 49),
        (TableDescriptor(PLAIN, properties={"table.datalake.enabled": "true"}), 15),
        (
            TableDescriptor(
                PLAIN,
                partition_keys=["id", "day"],
                properties={"table.auto-partition.enabled": "true"},
            ),
            15,
        ),
        (
            TableDescriptor(
                KEYED,
                properties={"table.merge-engine": "first_row", "table.delete.behavior": "allow"},
            ),
            39,
        ),
    ],
)
def test_what_fluss_refuses_is_refused_with_its_code(table, code):
    assert refusal_of(table) == code


@pytest.mark.parametrize("function", ["rbm32", "rbm64"])
def test_bitmaps_are_refused_when_the_table_is_created(function):
    schema = (
        Schema.builder()
        .column("id", DataTypes.int())
        .column("seen", DataTypes.bytes(), aggregation=function)
        .primary_key(["id"])
        .build()
    )
    table = TableDescriptor(schema, properties={"table.merge-engine": "aggregation"})
    assert refusal_of(table) == 39


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"{", b'{"version":1,"schema":5}'])
def test_a_descriptor_that_cannot_be_read_is_error_15(text):
    with pytest.raises(FlussError) as refused:
        read_descriptor(text)
    assert refused.value.error_code == 15


# --- ALTER TABLE ----------------------------------------------------------------------------------


def altering(**changes):
    request = pb.AlterTableRequest(ignore_if_not_exists=False)
    for key, value in changes.get("set", {}).items():
        request.config_changes.add(config_key=key, config_value=value, op_type=0)
    for key in changes.get("delete", []):
        request.config_changes.add(config_key=key, op_type=1)
    for name, text, position in changes.get("add", []):
        request.add_columns.add(
            column_name=name, data_type_json=text, column_position_type=position
        )
    for name in changes.get("drop", []):
        request.drop_columns.add(column_name=name)
    return request


TABLE = with_defaults(TableDescriptor(PLAIN))
BIGINT = b'{"type":"BIGINT"}'


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"set": {"table.log.format": "INDEXED"}}, 56),
        ({"set": {"table.replication.factor": "3"}}, 56),
        ({"set": {"table.datalake.enabled": "true"}}, 56),
        ({"set": {"table.log.ttl": "soon"}}, 39),
        ({"add": [("id", BIGINT, 0)]}, 56),
        ({"add": [("x", BIGINT, 1)]}, -1),
        ({"add": [("x", b'{"type":"BIGINT","nullable":false}', 0)]}, -1),
        ({"drop": ["id"]}, -1),
        ({"set": {"a": "b"}, "add": [("x", BIGINT, 0)]}, 56),
    ],
)
def test_unsupported_changes_are_refused_with_the_code_of_fluss(changes, code):
    with pytest.raises(FlussError) as refused:
        altered_table(TABLE, altering(**changes))
    assert refused.value.error_code == code


def test_properties_change_and_columns_are_added_at_the_end():
    changed = altered_table(TABLE, altering(set={"table.log.ttl": "1h", "mine": "yes"}))
    assert changed.options.log_ttl_ms == 3_600_000
    assert dict(changed.custom_properties) == {"mine": "yes"}
    assert altered_table(changed, altering(delete=["mine"])).custom_properties == {}
    wider = altered_table(TABLE, altering(add=[("x", BIGINT, 0), ("y", BIGINT, 0)]))
    assert wider.schema.column_names == ("id", "day", "x", "y")
    assert [each.column_id for each in wider.schema.columns] == [0, 1, 2, 3]


def test_a_request_without_changes_changes_nothing():
    assert altered_table(TABLE, altering(delete=["nothing"])) is TABLE
