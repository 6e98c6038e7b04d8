"""Schemas, tables and databases as JSON: we read what Java reads."""

from __future__ import annotations

import json
from random import Random

import pytest

from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.types.data_type import ArrayType, DecimalType, RowType
from fluss.model.types.type_json import type_to_json
from tests.support.generators.golden_documents import DOCUMENTS
from tests.support.generators.seeded_values import KEY_TYPES, random_type

READERS = {
    "schema": Schema,
    "table": TableDescriptor,
    "database": DatabaseDescriptor,
}
NAMES = ("id", "größe", "a-b", "with space", "\U0001f600", 'quo"ted', "x1", "Y", "z.z", "_u")
TABLES = 300


def random_document(rng):
    """A table that Fluss accepts: flat or nested columns, perhaps keys, partitions and buckets."""
    names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    is_keyed = rng.random() < 0.5
    keys = names[: rng.randint(1, len(names))] if is_keyed else []
    types = [rng.choice(KEY_TYPES) if each in keys else random_type(rng) for each in names]
    next_id = iter(range(10_000))
    columns = []
    for name, data_type in zip(names, types, strict=True):
        column = {"name": name, "data_type": type_to_json(data_type), "id": next(next_id)}
        with_ids(column["data_type"], data_type, next_id)
        if rng.random() < 0.3:
            column["comment"] = rng.choice(("", "what it is", "größer \U0001f600", '"'))
        columns.append(column)
    schema = {"version": 1, "columns": columns, "highest_field_id": next(next_id) - 1}
    if keys:
        schema["primary_key"] = keys
    flat = [n for n, t in zip(names, types, strict=True) if not t.is_nested]
    document = {"version": 1, "schema": schema, "partition_key": []}
    may_partition = len(keys) > 1 and not isinstance(types[len(keys) - 1], DecimalType)
    if may_partition and rng.random() < 0.5:
        document["partition_key"] = [keys[-1]]
    if rng.random() < 0.5:
        document["bucket_count"] = rng.randint(1, 99)
        document["bucket_key"] = [] if keys else flat[: rng.randint(0, len(flat))]
    if rng.random() < 0.3:
        document["comment"] = rng.choice(("", "ours", "\U0001f600"))
    document["properties"] = {"table.log.ttl": "7 d"} if rng.random() < 0.3 else {}
    document["custom_properties"] = {f"k{i}": "größer" for i in range(rng.randint(0, 3))}
    return document


def with_ids(node, data_type, next_id):
    """Gives ids to the fields of rows, depth first, as Fluss numbers them."""
    match data_type:
        case ArrayType():
            with_ids(node["element_type"], data_type.element, next_id)
        case RowType():
            for field, field_type in zip(node["fields"], data_type.field_types, strict=True):
                field["field_id"] = next(next_id)
                with_ids(field["field_type"], field_type, next_id)
        case _ if data_type.is_nested:
            with_ids(node["key_type"], data_type.key, next_id)
            with_ids(node["value_type"], data_type.value, next_id)


def parsed(texts):
    """Parsed documents, in a form that keeps the order of their keys."""
    return [json.dumps(json.loads(each)) for each in texts]


@pytest.mark.parametrize("kind", READERS)
def test_we_understand_a_document_as_java_does(oracle, compare, kind):
    given = [json.dumps(each).encode() for _, own, each in DOCUMENTS if own == kind]
    assert given
    java = oracle.json_again(kind, given)
    ours = [READERS[kind].from_json(each).to_json() for each in given]
    compare.others(f"{kind} JSON", given, ours=parsed(ours), java=parsed(java))


def test_we_understand_random_tables_as_java_does(oracle, compare):
    rng = Random(71)
    given = [json.dumps(random_document(rng)).encode() for _ in range(TABLES)]
    java = oracle.json_again("table", given)
    ours = [TableDescriptor.from_json(each).to_json() for each in given]
    # Java keeps properties in a hash map, so their order has no meaning.
    as_sets = [
        [json.dumps(json.loads(each), sort_keys=True) for each in texts] for texts in (ours, java)
    ]
    compare.others("table JSON", given, ours=as_sets[0], java=as_sets[1])


def test_java_reads_the_tables_that_we_write(oracle, compare):
    rng = Random(72)
    given = [json.dumps(random_document(rng)).encode() for _ in range(TABLES)]
    ours = [TableDescriptor.from_json(each).to_json().encode() for each in given]
    java = oracle.json_again("table", ours)
    as_sets = [
        [json.dumps(json.loads(each), sort_keys=True) for each in texts] for texts in (ours, java)
    ]
    compare.others("table JSON, ours read by Java", given, ours=as_sets[0], java=as_sets[1])
