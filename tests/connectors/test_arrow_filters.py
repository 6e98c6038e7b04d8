import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fluss.connector.arrow_filters import with_predicate
from fluss.errors import InvalidSchemaError
from fluss.model.paths import TablePath
from fluss.model.predicate import col
from fluss.model.schema import Schema
from fluss.model.table import TableDescriptor
from fluss.model.table_info import TableInfo

TABLE = TableInfo.of(
    TableDescriptor(Schema(pa.schema([("id", pa.int64())])), bucket_count=1),
    table_path=TablePath("db", "t"),
    table_id=1,
    schema_id=1,
)


def test_an_expression_takes_the_place_of_a_predicate():
    options = {"filter": (pc.field("id") > 5) & (pc.field("_bucket") == 1), "limit": 3}
    assert with_predicate(options, TABLE) == {
        "filter": (col("id") > 5) & (col("_bucket") == 1),
        "limit": 3,
    }


def test_metadata_columns_have_the_names_of_the_scan():
    options = {"filter": pc.field("m_bucket") == 1, "metadata_prefix": "m_"}
    assert with_predicate(options, TABLE)["filter"] == col("m_bucket").equal(1)
    with pytest.raises(InvalidSchemaError):
        with_predicate({"filter": pc.field("m_bucket") == 1}, TABLE)


@pytest.mark.parametrize("given", [None, "id > 5", col("id") > 5])
def test_anything_else_is_left_to_the_options_to_judge(given):
    options = {"filter": given}
    assert with_predicate(options, TABLE) is options
