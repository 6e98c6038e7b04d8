"""Stores of earlier versions are rewritten once, wherever a crash breaks that off."""

import shutil
import struct
from pathlib import Path

import pytest

from fluss.errors import FlussError
from fluss_server.kv import store_upgrade
from fluss_server.kv.kv_store import KvStore, StoreState

rocksdict = pytest.importorskip("rocksdict")

IDENTITY = b"identity of the bucket"
ROWS = {bytes([number]) + b"key": f"row {number}".encode() for number in range(256)}


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """A store as earlier versions made it."""
    monkeypatch.setattr(store_upgrade, "_ROWS_PER_WRITE", 100)
    folder = tmp_path / "kv-0"
    made = rocksdict.Rdict(str(folder), rocksdict.Options(raw_mode=True))
    for key, value in ROWS.items():
        made[b"\x01" + key] = value
    made[b"\x00state"] = struct.pack("<qq", 700, len(ROWS))
    made[b"\x00identity"] = IDENTITY
    made.close()
    return folder


def check(folder):
    store = KvStore(folder, IDENTITY)
    assert dict(store.from_key(b"")) == ROWS
    assert store.state == StoreState(applied_offset=700, row_count=len(ROWS))
    store.close()
    assert [each.name for each in folder.parent.iterdir()] == ["kv-0"]


def test_everything_is_there_and_is_rewritten_once(earlier, caplog):
    check(earlier)
    assert "are rewritten for this version" in caplog.text
    caplog.clear()
    check(earlier)
    assert not caplog.text


def test_the_rows_of_another_bucket_are_still_refused(earlier):
    with pytest.raises(FlussError, match="another bucket"):
        KvStore(earlier, b"another identity")
    check(earlier)


@pytest.mark.parametrize("step", range(4))
def test_an_upgrade_that_is_broken_off_is_finished_or_begun_again(earlier, monkeypatch, step):
    """The renames, and the removal of the old store, are broken off one after the other."""
    left = [step]

    def broken(plain):
        def call(*arguments, **options):
            if not left[0]:
                raise OSError("the machine is switched off")
            left[0] -= 1
            return plain(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", broken(Path.rename))
        patched.setattr(store_upgrade, "sync_directory", broken(store_upgrade.sync_directory))
        patched.setattr(shutil, "rmtree", broken(shutil.rmtree))
        with pytest.raises(FlussError, match="switched off"):
            KvStore(earlier, IDENTITY)
    check(earlier)


def test_half_a_rewrite_is_begun_again(earlier):
    shutil.copytree(earlier, earlier.with_name("kv-0.new"))
    (earlier.with_name("kv-0.new") / "CURRENT").unlink()
    check(earlier)


def test_a_store_that_was_never_finished_is_empty(tmp_path):
    """A crash between the creation of a store and that of its second column family."""
    made = rocksdict.Rdict(str(tmp_path / "kv-0"), rocksdict.Options(raw_mode=True))
    made.close()
    store = KvStore(tmp_path / "kv-0", IDENTITY)
    assert store.state == StoreState(applied_offset=0, row_count=0)
    assert not list(store.from_key(b""))
    store.close()
