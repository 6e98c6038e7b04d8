"""The errors of a store whose files cannot be written."""

import os

import pytest

from fluss.error_codes import ErrorCode
from fluss_server.kv.kv_store import _broken


@pytest.mark.parametrize(
    ("why", "said", "hint"),
    [
        (
            "IO error: No space left on device: While appending to file: /d/9.log",
            "disk of .* is full",
            "free space",
        ),
        ("Corruption: block checksum mismatch", "cannot be read or written", "remove this folder"),
    ],
)
def test_a_full_disk_is_distinguished_from_damage(tmp_path, why, said, hint):
    error = _broken(tmp_path, Exception(why))
    assert error.error_code == ErrorCode.KV_STORAGE_EXCEPTION
    assert error.is_retriable
    with pytest.raises(type(error), match=said):
        raise error
    assert hint in error.hint
    assert os.fspath(tmp_path) in error.message
