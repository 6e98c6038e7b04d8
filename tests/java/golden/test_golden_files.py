"""The golden files are complete, readable, and equal to what Java writes today."""

from __future__ import annotations

import json

from tests.support.differential.golden import FOLDER, REMEDY
from tests.support.generators.golden_cases import KEY_CASES, ROW_CASES
from tools.record_golden import document, recorded


def test_each_file_says_which_java_wrote_it_and_how():
    files = sorted(FOLDER.glob("*.json"))
    assert files
    for path in files:
        head = json.loads(path.read_text())
        assert head["fluss"] == "0.9.1-incubating"
        assert head["command"] == "python -m tools.record_golden"
        assert f"`{path.name}`" in (FOLDER / "README.md").read_text(), path.name


def test_every_data_type_has_recorded_rows_and_every_key_type_recorded_keys():
    assert len({type(case.types[0]) for case in ROW_CASES if len(case.types) == 1}) == 19
    assert len({type(case.types[0]) for case in KEY_CASES}) == 16


def test_the_oracle_records_the_same_today(oracle):
    files = {path.stem: path.read_text() for path in FOLDER.glob("*.json")}
    today = {name: document(oracle, entries) for name, entries in recorded(oracle)}
    if int(oracle.java_version.split(".")[0]) >= 19:
        today["partition_texts"] = files["partition_texts"]  # other digits; see the README
    differing = [name for name in today if today[name] != files.get(name)]
    assert not differing, REMEDY
    assert set(files) == set(today)
