"""Folders of files to import that cannot be read."""

import os

import pytest

from fluss.cli.files.input_files import input_files
from fluss.errors import InvalidValueError


def test_a_folder_that_may_not_be_read_is_no_empty_folder(monkeypatch, tmp_path):
    def denied(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(InvalidValueError, match="cannot be read: Permission denied"):
        input_files([str(tmp_path)], None)
