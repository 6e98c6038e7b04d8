"""`alter_table`: aggregations of added columns."""

import pytest

from fluss import AggFunction, Column, DataTypes, Schema
from fluss.errors import InvalidSchemaError, UnsupportedVersionError
from fluss.wire.api import ApiKey


@pytest.fixture
def sums(session):
    """A table that adds values up."""
    schema = (
        Schema.builder()
        .column("id", DataTypes.int())
        .column("total", DataTypes.bigint(), aggregation="sum")
        .primary_key(["id"])
        .build()
    )
    properties = {"table.merge-engine": "aggregation"}
    return session.create_table("sums", schema, buckets=1, properties=properties)


def test_an_added_column_keeps_its_aggregation(session, sums):
    added = [
        Column("more", DataTypes.bigint(), aggregation=AggFunction.of("sum")),
        Column("names", DataTypes.string(), aggregation=AggFunction.of("listagg", delimiter="|")),
    ]
    if not session._connection.cluster.offers_now(ApiKey.SCAN_KV):
        # 0.9.1 would add the column without the function: nothing is sent to it.
        with pytest.raises(UnsupportedVersionError) as refused:
            session.alter_table("sums", add_columns=added)
        assert "last value" in str(refused.value.hint)
        assert session.table("sums").schema == sums.schema
        return
    table = session.alter_table("sums", add_columns=added)
    assert [each.aggregation for each in table.info.schema.columns[2:]] == [
        each.aggregation for each in added
    ]
    table.upsert({"id": [1], "total": [10], "more": [10], "names": ["a"]})
    table.upsert({"id": [1], "total": [20], "more": [20], "names": ["b"]})
    assert table.to_arrow().to_pylist() == [{"id": 1, "total": 30, "more": 30, "names": "a|b"}]


def test_an_aggregation_of_another_type_is_refused(session, sums):
    text = Column("text", DataTypes.string(), aggregation=AggFunction.of("sum"))
    with pytest.raises(InvalidSchemaError, match="sum combines"):
        session.alter_table("sums", add_columns=[text])
    assert session.table("sums").schema == sums.schema


def test_an_aggregation_in_a_table_without_one_is_refused(session, keyed):
    column = Column("more", DataTypes.bigint(), aggregation=AggFunction.of("sum"))
    with pytest.raises(InvalidSchemaError, match="does not aggregate") as refused:
        session.alter_table("keyed", add_columns=[column])
    assert "table.merge-engine" in str(refused.value.hint)
    assert session.table("keyed").schema == keyed.schema
