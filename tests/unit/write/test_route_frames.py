"""Rows of several tables are split as a loop over the rows would split them."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import FlussError, InvalidValueError
from fluss.model.paths import TablePath
from fluss.write.collected_rows import marks_of, runs_of
from fluss.write.route_frames import Routing, route

NAMES = ["d.a", "d.b", "d.c", "d.d"]


@dataclass
class Schema:
    column_names: tuple = ("id", "text")


@dataclass
class Info:
    table_path: TablePath
    schema: Schema = field(default_factory=Schema)

    def has_primary_key(self):
        return True


@dataclass
class Prepared:
    path: TablePath
    rows: object


@dataclass
class Writer:
    """Takes what is prepared, and refuses tables that it does not know."""

    taken: list = field(default_factory=list)

    @property
    def info(self):
        return self._info

    def writer(self, path):
        if str(path) not in NAMES:
            raise InvalidValueError(f"{path} is not there.")
        self._info = Info(path)
        return self

    def prepare(self, path, mode, rows):
        del mode
        return Prepared(path, rows)

    def take_prepared(self, prepared):
        self.taken.append(prepared)

    def rows(self):
        found: dict[str, list] = {}
        for each in self.taken:
            rows = each.rows if isinstance(each.rows, list) else each.rows.to_pylist()
            found.setdefault(str(each.path), []).extend(rows)
        return found


def routed(data, **options):
    writer = Writer()
    routing = Routing(
        **{"by": "t", "mode": None, "names": None, "path_of": TablePath.parse} | options
    )
    counts = route(writer, data, routing)
    return writer, {str(path): count for path, count in counts.items()}


def frame(names, kind):
    column = pa.array(names, pa.string())
    if kind == "dictionary":
        column = column.dictionary_encode()
    elif kind == "view":
        column = column.cast(pa.string_view())
    texts = pa.array([str(each) for each in range(len(names))])
    nested = pa.array([[each] for each in texts.to_pylist()], pa.list_(pa.string_view()))
    columns = {"t": column, "id": range(len(names)), "text": texts.cast(pa.string_view())}
    if kind == "nested":
        columns["text"] = nested
    return pa.table(columns)


def handed_over(table, kind):
    """The table as a caller may hold it."""
    if kind == "dicts":
        return table.to_pylist()
    if kind == "chunks":
        return pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])
    if kind == "stream":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=5))
    return table


@given(
    names=st.lists(st.sampled_from(NAMES), max_size=40),
    kind=st.sampled_from(["plain", "dictionary", "view", "nested", "dicts", "chunks", "stream"]),
)
def test_each_table_gets_its_rows_in_their_order(names, kind):
    table = frame(names, kind)
    writer, counts = routed(handed_over(table, kind))
    expected: dict[str, list] = {}
    for row in table.to_pylist():
        expected.setdefault(row.pop("t"), []).append(row)
    assert writer.rows() == expected
    assert counts == {name: len(rows) for name, rows in expected.items()}


@given(
    values=st.lists(st.sampled_from("abcdef"), max_size=40),
    kind=st.sampled_from(["plain", "dictionary", "view", "nested", "dicts", "chunks", "stream"]),
)
def test_several_values_may_name_one_table_whose_rows_keep_their_order(values, kind):
    """Kinds of events, for example; or a name with and without its database."""
    names = {each: NAMES[number % 2] for number, each in enumerate("abcdef")}
    table = frame(values, kind)
    writer, counts = routed(handed_over(table, kind), names=names)
    expected: dict[str, list] = {}
    for row in table.to_pylist():
        expected.setdefault(names[row.pop("t")], []).append(row)
    assert writer.rows() == expected
    assert counts == {name: len(rows) for name, rows in expected.items()}


@given(
    names=st.lists(st.sampled_from(NAMES), max_size=20),
    bad=st.sampled_from([None, "d.e", "d", "D.A", ""]),
    at=st.integers(0, 20),
    kind=st.sampled_from(["plain", "dictionary", "dicts", "chunks"]),
)
def test_the_first_row_without_a_table_is_named_and_nothing_is_taken(names, bad, at, kind):
    at = min(at, len(names))
    names = [*names[:at], bad, *names[at:]]
    table = frame(names, kind)
    data = table.to_pylist() if kind == "dicts" else table
    if kind == "chunks":
        data = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    writer = Writer()
    routing = Routing(by="t", mode=None, names=None, path_of=TablePath.parse)
    with pytest.raises(FlussError) as refused:
        route(writer, data, routing)
    assert refused.value.row == at
    assert not writer.taken


def test_values_are_translated_by_a_dict_or_a_function():
    table = pa.table({"t": [1, 2, 1], "id": [0, 1, 2]})
    for names in ({1: "d.a", 2: "d.b"}, lambda value: f"d.{'xab'[value]}"):
        assert routed(table, names=names)[1] == {"d.a": 2, "d.b": 1}
    with pytest.raises(InvalidValueError, match="`tables` has no table") as refused:
        routed(table, names={1: "d.a"})
    assert refused.value.row == 1


@given(marks=st.lists(st.booleans(), max_size=50))
def test_marks_are_kept_as_stretches(marks):
    array = np.array(marks, dtype=np.bool_)
    assert marks_of(runs_of(array), len(marks)).tolist() == marks
