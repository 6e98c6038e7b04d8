"""Administering, in both dialects: every documented call, its former names, its errors."""

import time
import uuid

import pyarrow as pa
import pytest

from fluss.errors import (
    DatabaseAlreadyExistsError,
    DatabaseNotEmptyError,
    DatabaseNotFoundError,
    FlussError,
    InvalidNameError,
    InvalidPartitionError,
    InvalidSchemaError,
    InvalidValueError,
    PartitionAlreadyExistsError,
    PartitionNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

COLUMNS = pa.schema([("id", pa.int32()), ("region", pa.string())])


async def test_databases_are_created_looked_at_and_dropped(dialect):
    fluss, admin = dialect.fluss, dialect.admin
    name = f"{dialect.database}_more"
    described = fluss.DatabaseDescriptor(comment="for tests", custom_properties={"owner": "me"})
    await admin.create_database(name, described)
    assert name in await admin.list_databases()
    assert await admin.database_exists(name)
    info = await admin.get_database_info(name)
    assert info.database_name == name
    assert info.get_database_descriptor().comment == "for tests"
    assert info.get_database_descriptor().get_custom_properties() == {"owner": "me"}
    assert abs(info.created_time - time.time() * 1_000) < 3_600_000
    assert info.modified_time >= info.created_time
    with pytest.raises(DatabaseAlreadyExistsError):
        await admin.create_database(name)
    await admin.create_database(name, ignore_if_exists=True)
    await admin.create_database(name, None, True)
    await admin.create_table(f"{name}.t", fluss.TableDescriptor(fluss.Schema(COLUMNS)))
    with pytest.raises(DatabaseNotEmptyError):
        await admin.drop_database(name, cascade=False)
    await admin.drop_database(name)
    assert not await admin.database_exists(name)
    await admin.drop_database(name, ignore_if_not_exists=True)
    with pytest.raises(DatabaseNotFoundError) as caught:
        await admin.drop_database(name)
    assert caught.value.error_code == fluss.ErrorCode.DATABASE_NOT_EXIST
    with pytest.raises(DatabaseNotFoundError):
        await admin.get_database_info(name)


async def test_tables_are_created_looked_at_and_dropped(dialect):
    fluss, admin = dialect.fluss, dialect.admin
    path = fluss.TablePath(dialect.database, "events")
    schema = fluss.Schema(COLUMNS, primary_keys=["id", "region"])
    described = fluss.TableDescriptor(
        schema,
        partition_keys=["region"],
        bucket_count=3,
        bucket_keys=["id"],
        comment="a comment",
        log_format="ARROW",
        kv_format="COMPACTED",
        properties={"table.log.ttl": "3d"},
        custom_properties={"mine": "1"},
    )
    assert described.get_schema() == schema
    await admin.create_table(path, described)
    assert await admin.table_exists(path)
    assert await admin.list_tables(dialect.database) == ["events"]
    info = await admin.get_table_info(path)
    assert await admin.get_table(path) == info
    assert (info.table_path, info.num_buckets, info.comment) == (path, 3, "a comment")
    assert info.table_id >= 0
    assert info.schema_id == 1
    assert info.get_primary_keys() == ["id", "region"]
    assert info.get_partition_keys() == ["region"]
    assert info.get_bucket_keys() == ["id"]
    assert info.has_primary_key()
    assert info.is_partitioned()
    assert info.get_column_names() == ["id", "region"]
    assert info.get_column_count() == 2
    assert info.get_schema().get_columns() == schema.get_columns()
    assert info.get_schema().get_primary_keys() == ["id", "region"]
    assert info.get_properties()["table.log.ttl"] == "3d"
    assert info.get_custom_properties() == {"mine": "1"}
    with pytest.raises(TableAlreadyExistsError):
        await admin.create_table(path, described)
    await admin.create_table(path, described, ignore_if_exists=True)
    await admin.drop_table(path)
    assert not await admin.table_exists(path)
    await admin.drop_table(path, ignore_if_not_exists=True)
    with pytest.raises(TableNotFoundError):
        await admin.drop_table(path)


async def test_none_is_accepted_wherever_something_is_optional(dialect):
    fluss = dialect.fluss
    described = fluss.TableDescriptor(
        fluss.Schema(COLUMNS, primary_keys=None),
        partition_keys=None,
        bucket_count=None,
        bucket_keys=None,
        comment=None,
        log_format=None,
        kv_format=None,
        properties=None,
        custom_properties=None,
    )
    path = dialect.path()
    await dialect.admin.create_table(path, described, ignore_if_exists=None)
    info = await dialect.admin.get_table_info(path)
    assert info.comment is None
    assert info.num_buckets >= 1


async def test_a_table_is_named_by_a_path_or_by_text(dialect):
    table = await dialect.table({"id": pa.int32()})
    path = table.get_table_path()
    assert table.table_path == path
    for name in (path, str(path)):
        assert (await dialect.admin.get_table_info(name)).table_path == path
        assert (await dialect.connection.get_table(name)).get_table_path() == path
    for wrong in ("no-dot", "a.b.c", 5):
        with pytest.raises(InvalidNameError):
            dialect.connection.get_table(wrong)


async def test_a_missing_table_is_named_with_the_nearest_and_no_java(dialect):
    schema = dialect.fluss.Schema(COLUMNS)
    await dialect.admin.create_table(
        f"{dialect.database}.orders", dialect.fluss.TableDescriptor(schema)
    )
    for ask in (
        dialect.connection.get_table,
        dialect.admin.get_table_info,
        dialect.admin.drop_table,
    ):
        with pytest.raises(TableNotFoundError) as caught:
            await ask(f"{dialect.database}.order")
        assert caught.value.error_code == dialect.fluss.ErrorCode.TABLE_NOT_EXIST
        assert caught.value.hint == "did you mean 'orders'?"
        assert f"{dialect.database}.order" in caught.value.message
        assert "org.apache" not in str(caught.value)
        assert "\tat " not in str(caught.value)
    with pytest.raises(TableNotFoundError, match="no database"):
        await dialect.connection.get_table("nowhere_at_all.t")


async def test_a_table_that_cannot_be_is_refused_before_it_is_sent(dialect):
    fluss = dialect.fluss
    with pytest.raises(FlussError):
        await dialect.admin.create_table(
            dialect.path(),
            fluss.TableDescriptor(
                fluss.Schema(COLUMNS, primary_keys=["id"]), bucket_keys=["region"]
            ),
        )
    with pytest.raises(InvalidSchemaError) as caught:
        fluss.Schema(COLUMNS, primary_keys=["id_"])
    assert caught.value.hint == "did you mean 'id'?"


async def test_partitions_are_created_listed_and_dropped(dialect):
    table = await dialect.table(
        {"id": pa.int32(), "region": pa.string()}, partition_keys=["region"]
    )
    admin, path = dialect.admin, table.get_table_path()
    await admin.create_partition(path, {"region": "US"})
    await admin.create_partition(path, {"region": "EU"}, ignore_if_exists=True)
    await admin.create_partition(path, dialect.fluss.PartitionSpec({"region": "EU"}), True)
    with pytest.raises(PartitionAlreadyExistsError):
        await admin.create_partition(path, {"region": "US"})
    infos = await admin.list_partition_infos(path)
    assert sorted(each.partition_name for each in infos) == ["EU", "US"]
    assert len({each.partition_id for each in infos}) == 2
    for only in (
        await admin.list_partition_infos(path, {"region": "US"}),
        await admin.list_partition_infos_with_spec(path, {"region": "US"}),
    ):
        assert [each.partition_name for each in only] == ["US"]
    await admin.drop_partition(path, {"region": "US"})
    await admin.drop_partition(path, {"region": "US"}, ignore_if_not_exists=True)
    with pytest.raises(PartitionNotFoundError):
        await admin.drop_partition(path, {"region": "US"})
    for values in ({"country": "US"}, {}):
        with pytest.raises(InvalidPartitionError):
            await admin.create_partition(path, values)


async def test_offsets_are_asked_for_in_every_documented_way(dialect):
    fluss, admin = dialect.fluss, dialect.admin
    table = await dialect.filled({"id": pa.int32()}, [[1], [2], [3]])
    path = table.get_table_path()
    for earliest in (
        fluss.OffsetSpec.earliest(), fluss.OffsetSpec.Earliest, fluss.OffsetType.EARLIEST,
        "earliest", fluss.EARLIEST_OFFSET,
    ):  # fmt: skip
        assert await admin.list_offsets(path, [0], earliest) == {0: 0}
    for latest in (
        fluss.OffsetSpec.latest(), fluss.OffsetSpec.Latest, fluss.OffsetType.LATEST, "latest",
        fluss.LATEST_OFFSET,
    ):  # fmt: skip
        assert await admin.list_offsets(path, [0], latest) == {0: 3}
    assert await admin.list_offsets(path, bucket_ids=[0], offset_type="latest") == {0: 3}
    assert await admin.list_offsets(path, [0], fluss.OffsetSpec.timestamp(0)) == {0: 0}
    assert await admin.list_offsets(path, [0], 0) == {0: 0}
    found = await admin.list_offsets(
        path, bucket_ids=[0], offset_type="timestamp", timestamp=1704067200000
    )
    assert found == {0: 0}
    assert await admin.list_offsets(path, [], "latest") == {}
    for wrong, hint in (("lastest", "did you mean 'latest'?"), (None, "pass OffsetSpec.latest()")):
        with pytest.raises(InvalidValueError) as caught:
            await admin.list_offsets(path, [0], wrong)
        assert hint in caught.value.hint
    with pytest.raises(InvalidValueError, match="no bucket 7"):
        await admin.list_offsets(path, [7], "latest")


async def test_offsets_of_partitions_are_asked_for_by_the_name_of_the_partition(dialect):
    fluss, admin = dialect.fluss, dialect.admin
    table = await dialect.table({"id": pa.int32(), "r": pa.string()}, partition_keys=["r"])
    path = table.get_table_path()
    await admin.create_partition(path, {"r": "US"})
    writer = table.new_append().create_writer()
    writer.append([1, "US"])
    await writer.flush()
    for spec in (fluss.OffsetSpec.latest(), fluss.OffsetType.LATEST, "latest"):
        assert await admin.list_partition_offsets(path, "US", [0], spec) == {0: 1}
    found = await admin.list_partition_offsets(
        path, partition_name="US", bucket_ids=[0], offset_type="latest"
    )
    assert found == {0: 1}
    with pytest.raises(PartitionNotFoundError):
        await admin.list_partition_offsets(path, "U", [0], "latest")
    with pytest.raises(FlussError, match="is partitioned") as caught:
        await admin.list_offsets(path, [0], "latest")
    assert "list_partition_offsets" in caught.value.hint


async def test_servers_are_listed_with_their_kind(dialect):
    nodes = await dialect.admin.get_server_nodes()
    kinds = {each.server_type for each in nodes}
    assert kinds == {"CoordinatorServer", "TabletServer"}
    for node in nodes:
        assert node.host
        assert node.port > 0
        prefix = "cs" if node.server_type == "CoordinatorServer" else "ts"
        assert node.uid == f"{prefix}-{node.id}"


async def test_a_table_without_a_lake_has_no_lake_snapshot(dialect):
    table = await dialect.table({"id": pa.int32()})
    with pytest.raises(FlussError) as caught:
        await dialect.admin.get_latest_lake_snapshot(table.get_table_path())
    assert caught.value.error_code != dialect.fluss.ErrorCode.CLIENT_ERROR
    with pytest.raises(TableNotFoundError):
        await dialect.admin.get_latest_lake_snapshot(f"{dialect.database}.none")


async def test_a_table_object_has_the_facts_of_its_table(dialect):
    table = await dialect.table({"id": pa.int32(), "name": pa.string()}, primary_keys=["id"])
    assert table.has_primary_key()
    assert table.get_table_info().table_path == table.get_table_path()
    assert table.arrow_schema == pa.schema(
        [pa.field("id", pa.int32(), nullable=False), pa.field("name", pa.string())]
    )
    assert str(table.get_table_path()) in repr(table)


async def test_a_table_may_be_created_immediately_after_its_database(cluster):
    import fluss

    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with await fluss.FlussConnection.create(config) as connection:
        admin = await connection.get_admin()
        for number in range(5):
            name = f"hasty_{uuid.uuid4().hex[:8]}_{number}"
            await admin.create_database(name)
            path = fluss.TablePath(name, "first")
            schema = fluss.Schema(pa.schema([("id", pa.int64())]))
            began = time.monotonic()
            await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
            # A coordinator of 0.9.1 may overlook the table otherwise, which then has no leader.
            assert time.monotonic() - began > 0.09
            assert await admin.list_offsets(path, [0], fluss.OffsetSpec.latest()) == {0: 0}
            await admin.drop_database(name, cascade=True)
