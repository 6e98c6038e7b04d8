"""Log, KV and value batches against bytes that Java wrote."""

from __future__ import annotations

import dataclasses

import pytest

from fluss.errors import CorruptBatchError
from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.records.kv.kv_batch import read_kv_batch
from fluss.records.kv.row_bytes import batch_from_rows
from fluss.records.kv.value_batch import (
    batch_from_values,
    frames_of_values,
    read_value_batch,
    write_value_batch,
    write_values,
)
from fluss.records.log.log_batch import iter_log_batches
from tests.support.differential.golden import REMEDY, answers, golden
from tests.support.generators.arrow_rows import rows_of
from tests.support.generators.batches import (
    encoded_rows,
    kv_batch_of,
    layout_of,
    log_batch_of,
    read_log,
)
from tests.support.generators.golden_cases import KV_CASES, LOG_CASES, VALUE_CASES, VALUE_SCHEMA_ID
from tests.support.generators.seeded_values import exact

ROW_LOG_CASES = [
    each for each in LOG_CASES if each.log_format != "ARROW" and each.header.magic == 0
]


def name(case):
    return case.name


def recorded(file, case):
    entry = golden(file)[case.name]
    assert entry["types"] == [str(each) for each in case.types], REMEDY
    assert entry["records"] == [repr(each) for each in case.records], REMEDY
    assert entry.get("header") in {None, repr(getattr(case, "header", None))}, REMEDY
    return bytes.fromhex(entry["bytes"])


@pytest.mark.parametrize("case", LOG_CASES, ids=name)
def test_we_read_the_recorded_log_batch(case):
    data = recorded("log_batches", case)
    records, (batch,) = read_log(case.log_format, case.types, data, magic_1="leader_epoch")
    assert exact(records) == exact(list(case.records))
    header, said = batch.header, case.header
    assert header.size_bytes == len(data)
    assert header.is_append_only == said.append_only
    assert dataclasses.astuple(said)[2:] == (
        header.schema_id,
        header.base_offset,
        header.commit_timestamp,
        header.writer_id,
        header.batch_sequence,
    )


@pytest.mark.parametrize("case", ROW_LOG_CASES, ids=name)
def test_a_log_batch_of_rows_has_the_recorded_bytes(case):
    assert log_batch_of(case.log_format, case.types, case.records, case.header) == recorded(
        "log_batches", case
    )


def test_an_empty_arrow_batch_has_the_recorded_bytes():
    (case,) = (each for each in LOG_CASES if each.name == "ARROW empty")
    assert log_batch_of(LogFormat.ARROW, case.types, (), case.header) == recorded(
        "log_batches", case
    )


@pytest.mark.parametrize("case", LOG_CASES, ids=name)
@pytest.mark.parametrize("at", [25, 40, -1])
def test_a_flipped_bit_in_a_recorded_batch_is_found(case, at):
    data = bytearray(recorded("log_batches", case))
    data[at] ^= 0x10
    with pytest.raises(CorruptBatchError):
        list(iter_log_batches(bytes(data), magic_1="leader_epoch", tail="refuse"))


@pytest.mark.parametrize("case", KV_CASES, ids=name)
def test_a_kv_batch_has_the_recorded_bytes(case):
    written = kv_batch_of(
        case.kv_format,
        case.types,
        case.records,
        schema_id=case.schema_id,
        writer_id=case.writer_id,
        batch_sequence=case.sequence,
    )
    assert written == recorded("kv_batches", case)


@pytest.mark.parametrize("case", KV_CASES, ids=name)
def test_we_read_the_recorded_kv_batch(case):
    batch = read_kv_batch(recorded("kv_batches", case))
    assert (batch.schema_id, batch.writer_id, batch.batch_sequence) == (
        case.schema_id,
        case.writer_id,
        case.sequence,
    )
    assert list(batch.keys.gathered()) == [key for key, _ in case.records]
    assert batch.deletes.tolist() == [row is None for _, row in case.records]
    kept = batch.rows.take((~batch.deletes).nonzero()[0])
    rows = batch_from_rows(kept, layout_of(case.types), KvFormat(case.kv_format))
    expected = [row for _, row in case.records if row is not None]
    assert exact(rows_of(rows, case.types)) == exact(expected)


@pytest.mark.parametrize("case", VALUE_CASES, ids=name)
def test_values_and_their_batch_are_the_recorded_ones(case):
    values, layout = answers("values", case), layout_of(case.types)
    batch = bytes.fromhex(golden("values")[case.name]["batch"])
    rows = encoded_rows(KvFormat.COMPACTED, case.types, case.rows)
    written = write_values(rows, schema_id=VALUE_SCHEMA_ID)
    assert list(written) == values
    assert b"".join(write_value_batch(written)) == batch
    for frames in (read_value_batch(batch), frames_of_values(values)):
        layouts = {VALUE_SCHEMA_ID: layout}
        read = batch_from_values(frames, layouts, layout, KvFormat.COMPACTED)
        assert exact(rows_of(read, case.types)) == exact(list(case.rows))
