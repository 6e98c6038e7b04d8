"""JSON documents, index files and enumerations, compared with Java's results."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fluss.error_codes import ErrorCode
from fluss.model.change_type import ChangeType
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.types.type_json import type_from_json, type_to_json
from fluss.wire.api import ApiKey
from fluss_server.log.index_files import OffsetIndex, TimeIndex
from tests.support.differential.golden import golden
from tests.support.generators.golden_cases import (
    INDEX_BASE_OFFSET,
    OFFSET_INDEX_ENTRIES,
    TIME_INDEX_ENTRIES,
    TYPE_CASES,
)
from tests.support.generators.golden_documents import DOCUMENTS

READERS = {
    "schema": Schema,
    "table": TableDescriptor,
    "database": DatabaseDescriptor,
}


@pytest.mark.parametrize("data_type", TYPE_CASES, ids=str)
def test_a_type_is_the_recorded_json(data_type):
    recorded = json.loads(golden("type_json")[str(data_type)]["json"])
    assert json.dumps(type_to_json(data_type)) == json.dumps(recorded)
    assert type_from_json(recorded) == data_type


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kind, _ in DOCUMENTS if kind in READERS]
)
def test_we_read_a_document_as_java_does(name, kind):
    entry = golden("documents")[name]
    given = {each: document for each, _, document in DOCUMENTS}
    assert entry["given"] == given[name]
    ours = READERS[kind].from_json(json.dumps(entry["given"])).to_json()
    assert json.dumps(json.loads(ours)) == json.dumps(entry["java"])
    again = READERS[kind].from_json(json.dumps(entry["java"])).to_json()
    assert again == ours


def test_an_offset_index_has_the_recorded_bytes():
    recorded = bytes.fromhex(golden("segment_indexes")["offsets"]["bytes"])
    offsets, positions = np.array(OFFSET_INDEX_ENTRIES).T
    index = OffsetIndex(first_offset=INDEX_BASE_OFFSET, offsets=offsets, positions=positions)
    assert index.write() == recorded
    read = OffsetIndex.read(recorded, first_offset=INDEX_BASE_OFFSET)
    assert [read.position_for(offset) for offset in offsets] == positions.tolist()


def test_a_time_index_has_the_recorded_bytes():
    recorded = bytes.fromhex(golden("segment_indexes")["times"]["bytes"])
    timestamps, offsets = np.array(TIME_INDEX_ENTRIES).T
    index = TimeIndex(first_offset=INDEX_BASE_OFFSET, timestamps=timestamps, offsets=offsets)
    assert index.write() == recorded
    read = TimeIndex.read(recorded, first_offset=INDEX_BASE_OFFSET)
    assert [read.offset_for(timestamp) for timestamp in timestamps] == offsets.tolist()


def test_error_codes_have_the_recorded_names_and_flags():
    recorded = golden("enumerations")["errors"]["entries"]
    ours = [ErrorCode(code) for code, *_ in recorded]
    differing = [
        each.name
        for each, (_, name, retriable, refresh) in zip(ours, recorded, strict=True)
        if (each.name, each.is_retriable, each.refreshes_metadata) != (name, retriable, refresh)
    ]
    # Java retries it only in its authentication loop.
    assert differing == [ErrorCode.RETRIABLE_AUTHENTICATE_EXCEPTION.name]


def test_api_keys_have_the_recorded_names_and_visibility():
    recorded = golden("enumerations")["api keys"]["entries"]
    ours = [(int(each), each.name, each.is_public) for each in ApiKey if each.since == "0.9"]
    assert ours == [(number, name, public) for number, name, _, _, public in recorded]


def test_kinds_of_change_have_the_recorded_numbers():
    recorded = golden("enumerations")["change types"]["entries"]
    assert [(int(each), each.short_string()) for each in ChangeType] == [
        (number, short) for number, _, short in recorded
    ]
