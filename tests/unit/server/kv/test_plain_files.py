"""A copy of a store becomes a RocksDB that readers of KV snapshots open."""

import pytest
from crc32c import crc32c

from fluss.errors import CorruptDataError
from fluss_server.kv.kv_store import SERVER_FAMILY, KvStore, StoreState
from fluss_server.kv.plain_files import make_plain, record_at

rocksdict = pytest.importorskip("rocksdict")

BLOCK = 32 * 1024


def read_records(data):
    """Read a RocksDB log as its reader does."""
    found, parts, at = [], None, 0
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            assert data[at : at + left] == bytes(left)
            at += left
            continue
        masked = int.from_bytes(data[at : at + 4], "little")
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        part = data[at + 7 : at + 7 + size]
        turned = (masked - 0xA282EAD8) & 0xFFFFFFFF
        assert ((turned >> 17) | (turned << 15)) & 0xFFFFFFFF == crc32c(bytes([kind]) + part)
        assert size <= left - 7
        assert (parts is not None) == (kind in {3, 4})
        parts = (parts or b"") + part
        if kind in {1, 4}:
            found.append(parts)
            parts = None
        at += 7 + size
    assert parts is None
    return found


@pytest.mark.parametrize("left", [*range(14), 100])
def test_a_record_fits_into_the_blocks(left):
    before = record_at(0, bytes(BLOCK - 7 - left)) if left else record_at(0, bytes(BLOCK - 7))
    for data in (b"data", bytes(3 * BLOCK), b"x"):
        written = before + record_at(len(before), data)
        assert read_records(written)[-1] == data


def test_a_copy_is_a_rocksdb_with_the_rows_alone(tmp_path):
    store = KvStore(tmp_path / "kv-0", b"identity")
    rows = {f"key {number:05}".encode(): f"row {number}".encode() for number in range(5_000)}
    store.write(rows, StoreState(applied_offset=7, row_count=len(rows)))
    store.sync()
    gone = dict.fromkeys(list(rows)[:1_000])
    store.write(gone, StoreState(applied_offset=9, row_count=4_000))
    store.sync()
    store.copy_to(tmp_path / "copy")
    names = make_plain(tmp_path / "copy")
    later = {b"later": b"row"}
    store.write(later, StoreState(applied_offset=10, row_count=4_001))
    store.sync()

    assert sorted(each.name for each in (tmp_path / "copy").iterdir()) == sorted(names)
    assert {each.partition("-")[0] for each in names if ".sst" not in each} == {
        "CURRENT", "MANIFEST", "OPTIONS",
    }  # fmt: skip
    assert rocksdict.Rdict.list_cf(str(tmp_path / "copy")) == ["default"]
    options = rocksdict.Options(raw_mode=True)
    access = rocksdict.AccessType.read_only()
    copy = rocksdict.Rdict(str(tmp_path / "copy"), options, access_type=access)
    expected = dict(list(rows.items())[1_000:])
    assert dict(copy.items()) == expected
    copy.close()

    # The store was not touched.
    assert dict(store.from_key(b"")) == expected | later
    store.close()
    again = KvStore(tmp_path / "kv-0", b"identity")
    assert again.state == StoreState(applied_offset=10, row_count=4_001)
    assert dict(again.from_key(b"")) == expected | later
    again.close()


def test_a_copy_can_be_opened_to_be_changed(tmp_path):
    store = KvStore(tmp_path / "kv-0")
    store.write({b"key": b"row"}, StoreState(applied_offset=1, row_count=1))
    store.sync()
    store.copy_to(tmp_path / "copy")
    store.close()
    make_plain(tmp_path / "copy")
    copy = rocksdict.Rdict(str(tmp_path / "copy"), rocksdict.Options(raw_mode=True))
    copy[b"other"] = b"row"
    copy.close()
    copy = rocksdict.Rdict(str(tmp_path / "copy"), rocksdict.Options(raw_mode=True))
    assert dict(copy.items()) == {b"key": b"row", b"other": b"row"}
    copy.close()
    assert SERVER_FAMILY not in rocksdict.Rdict.list_cf(str(tmp_path / "copy"))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "CURRENT").write_text("MANIFEST-000005\n")
    with pytest.raises(CorruptDataError, match="is no RocksDB"):
        make_plain(tmp_path)
