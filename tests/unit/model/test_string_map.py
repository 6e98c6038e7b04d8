from __future__ import annotations

import copy

import pytest

from fluss.errors import InvalidSchemaError
from fluss.model.string_map import StringMap
from fluss.model.tables.table_options import LogFormat
from tests.support.copies import pickled


def test_it_is_a_mapping_that_equals_a_dict():
    made = StringMap({"a": "1", "b": "2"})
    assert made == {"a": "1", "b": "2"}
    assert dict(made) == {"a": "1", "b": "2"}
    assert made["a"] == "1"
    assert "c" not in made
    assert len(made) == 2
    assert repr(made) == "{'a': '1', 'b': '2'}"


def test_it_cannot_be_changed_and_so_can_be_hashed():
    made = StringMap({"a": "1"})
    with pytest.raises(TypeError):
        made["a"] = "2"  # type: ignore[index]
    assert hash(made) == hash(StringMap({"a": "1"}))
    assert made.with_items({"a": "2", "b": True}) == {"a": "2", "b": "true"}
    assert made == {"a": "1"}


def test_it_does_not_follow_the_mapping_it_was_made_from():
    source = {"a": "1"}
    made = StringMap(source)
    source["a"] = "2"
    assert made == {"a": "1"}


def test_it_can_be_pickled_and_copied():
    made = StringMap({"a": "1"})
    assert pickled(made) == made
    assert copy.deepcopy(made) == made


def test_numbers_truth_and_enums_are_written_as_fluss_writes_them():
    made = StringMap({"n": 3, "t": True, "f": False, "e": LogFormat.ARROW})
    assert made == {"n": "3", "t": "true", "f": "false", "e": "ARROW"}


@pytest.mark.parametrize("value", [None, 1.5, ["a"], b"x"])
def test_other_values_are_refused_with_their_key(value):
    with pytest.raises(InvalidSchemaError, match=r"'table\.log\.ttl'"):
        StringMap({"table.log.ttl": value})


@pytest.mark.parametrize("key", [1, "", None])
def test_keys_are_text(key):
    with pytest.raises(InvalidSchemaError, match="keys are text"):
        StringMap({key: "1"})


@pytest.mark.parametrize(
    "key",
    [
        "table.datalake.iceberg.credential",
        "table.datalake.iceberg.s3.secret-access-key",
        "table.datalake.iceberg.client-secret",
        "table.datalake.iceberg.jdbc.password",
        "table.datalake.iceberg.token",
        "table.datalake.iceberg.s3.session-token",
        "table.datalake.iceberg.header.Authorization",
        "table.datalake.iceberg.adls.account-key",
        "table.datalake.iceberg.adls.connection-string",
        "table.datalake.iceberg.adls.sas-token.account",
        "table.datalake.iceberg.jdbc.password.file",
    ],
)
def test_a_secret_is_kept_and_not_shown(key):
    made = StringMap({key: "hunter2", "a": "1"})
    assert made[key] == "hunter2"
    assert dict(pickled(made)) == {key: "hunter2", "a": "1"}
    assert repr(made) == str(made) == f"{{'{key}': '***', 'a': '1'}}"


@pytest.mark.parametrize(
    "key", ["table.datalake.iceberg.token-refresh-enabled", "bucket.key", "s3.access-key-id"]
)
def test_what_only_sounds_like_a_secret_is_shown(key):
    assert "hunter2" in repr(StringMap({key: "hunter2"}))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("postgresql://ann:hunter2@host/lake", "postgresql://ann:***@host/lake"),
        (
            "jdbc:postgresql://host/lake?user=ann&password=hunter2&ssl=1",
            "jdbc:postgresql://host/lake?user=ann&password=***&ssl=1",
        ),
        ("https://a.blob/x?sv=1&sig=hunter2", "https://a.blob/x?sv=1&sig=***"),
        ("jdbc:sqlserver://host;password=hunter2;x=1", "jdbc:sqlserver://host;password=***;x=1"),
        ("http://host:8181/a@b?design=c", "http://host:8181/a@b?design=c"),
    ],
)
def test_logins_in_urls_are_not_shown(value, shown):
    made = StringMap({"table.datalake.iceberg.uri": value})
    assert made.shown() == {"table.datalake.iceberg.uri": shown}
    assert made["table.datalake.iceberg.uri"] == value
