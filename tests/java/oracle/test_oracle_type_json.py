"""Data types as JSON: our documents are Java's, and each side reads the other's."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from fluss.model.types.data_type import ArrayType, DataField, MapType, RowType
from fluss.model.types.type_json import type_from_json, type_to_json
from tests.support.generators.seeded_values import ALL_TYPES, random_type

TYPES = 1_500


def some_types():
    rng = Random(41)
    made = [random_type(rng, depth=3) for _ in range(TYPES)]
    return [with_field_ids(each, rng) for each in (*ALL_TYPES, *made)]


def with_field_ids(data_type, rng):
    """The same type with ids and descriptions on the fields of its rows, as a table has them."""
    match data_type:
        case ArrayType():
            return replace(data_type, element=with_field_ids(data_type.element, rng))
        case MapType():
            return replace(data_type, value=with_field_ids(data_type.value, rng))
        case RowType():
            fields = (
                DataField(
                    rng.choice(("a", "größe", "\U0001f600", 'a "quoted" name', "new\nline"))
                    + str(index),
                    with_field_ids(each.data_type, rng),
                    rng.choice((None, "", "what it is", "\x01 \\ /")),
                    field_id=rng.randrange(1_000),
                )
                for index, each in enumerate(data_type.fields)
            )
            return replace(data_type, fields=tuple(fields))
        case _:
            return data_type


def test_a_type_becomes_the_json_that_java_writes(oracle, compare):
    types = some_types()
    java = [json.loads(each) for each in oracle.write_type_json(types)]
    ours = [type_to_json(each) for each in types]
    compare.others(
        "types as JSON",
        types,
        ours=[json.dumps(each) for each in ours],
        java=[json.dumps(each) for each in java],
    )


def test_we_read_the_types_that_java_writes(oracle, compare):
    types = some_types()
    read = [type_from_json(json.loads(each)) for each in oracle.write_type_json(types)]
    compare.others("types as JSON, Java's read by us", types, ours=read, java=types)


def test_java_reads_the_types_that_we_write(oracle, compare):
    types = some_types()
    read = oracle.read_type_json([json.dumps(type_to_json(each)).encode() for each in types])
    compare.others("types as JSON, ours read by Java", types, ours=types, java=read)
