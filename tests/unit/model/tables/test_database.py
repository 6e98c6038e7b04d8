from __future__ import annotations

import json

import pytest

from fluss.errors import CorruptDataError, InvalidSchemaError
from fluss.model.tables.database import DatabaseDescriptor, DatabaseInfo
from tests.support.copies import pickled
from tests.support.differential.golden import golden

DATABASES = [name for name, entry in golden("documents").items() if name.startswith("a database")]


def test_a_database_is_described_as_documented():
    descriptor = DatabaseDescriptor(comment="ours", custom_properties={"owner": "me"})
    assert descriptor.comment == "ours"
    assert descriptor.get_custom_properties() == {"owner": "me"}
    assert repr(descriptor) == (
        "DatabaseDescriptor(comment='ours', custom_properties={'owner': 'me'})"
    )
    assert DatabaseDescriptor() == DatabaseDescriptor(None, None)


def test_the_builder_makes_the_same_database():
    built = (
        DatabaseDescriptor.builder()
        .comment("ours")
        .custom_property("a", "1")
        .custom_properties({"b": "2"})
        .build()
    )
    assert built == DatabaseDescriptor("ours", {"a": "1", "b": "2"})


def test_a_database_comes_back_from_its_json_and_from_a_pickle():
    descriptor = DatabaseDescriptor("größer", {"k": "日本"})
    assert DatabaseDescriptor.from_json(descriptor.to_json()) == descriptor
    assert DatabaseDescriptor.from_json(DatabaseDescriptor().to_json()) == DatabaseDescriptor()
    assert pickled(descriptor) == descriptor
    assert hash(descriptor) == hash(pickled(descriptor))


@pytest.mark.parametrize("name", DATABASES)
def test_the_json_of_a_database_is_understood_as_java_does(name):
    entry = golden("documents")[name]
    read = DatabaseDescriptor.from_json(json.dumps(entry["given"]))
    assert json.loads(read.to_json()) == entry["java"]
    assert list(json.loads(read.to_json())) == list(entry["java"])


def test_there_are_databases_to_compare_with():
    assert DATABASES


@pytest.mark.parametrize("text", ["[]", '{"comment": 1}', '{"custom_properties": {"a": 1}}', "{"])
def test_json_that_fluss_does_not_write_is_corrupt(text):
    with pytest.raises(CorruptDataError):
        DatabaseDescriptor.from_json(text)


def test_properties_are_text():
    with pytest.raises(InvalidSchemaError, match="'a'"):
        DatabaseDescriptor(custom_properties={"a": None})


def test_a_database_that_exists_has_its_documented_accessors():
    info = DatabaseInfo(
        database_name="db",
        database_descriptor=DatabaseDescriptor("ours"),
        created_time=1,
        modified_time=2,
    )
    assert info.database_name == "db"
    assert info.get_database_descriptor().comment == "ours"
    assert (info.created_time, info.modified_time) == (1, 2)
    assert repr(info) == "DatabaseInfo(database_name='db', created_time=1, modified_time=2)"
