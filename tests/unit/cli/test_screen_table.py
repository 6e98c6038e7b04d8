"""Tables on a screen: columns that fit, and rows that come in several pieces."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.cli.files.format_names import OutputFormat
from fluss.cli.row_output import write_rows
from fluss.cli.screen_table import ScreenTable, screen_table

HOW = "name the ones to see"


def rows(*pairs):
    return pa.table({"id": [each for each, _ in pairs], "name": [each for _, each in pairs]})


def table():
    return ScreenTable(rows((1, "a")).schema, how=HOW)


def test_rows_in_pieces_have_one_header_and_columns_only_widen():
    growing = table()
    assert list(growing.lines(rows((1, "view"), (20, "click")), 80)) == [
        "id  name",
        " 1  view",
        "20  click",
    ]
    assert list(growing.lines(rows((3, "a")), 80)) == [" 3  a"]
    assert list(growing.lines(rows((1_000, "purchase")), 80)) == ["1000  purchase"]
    assert list(growing.lines(rows((4, "b")), 80)) == ["   4  b"]


def test_a_long_value_is_shortened_where_the_screen_has_no_room():
    growing = table()
    list(growing.lines(rows((1, "a")), 30))
    (line,) = growing.lines(rows((2, "x" * 100)), 40)
    assert line == f" 2  {'x' * 29}…"
    (line,) = growing.lines(rows((3, "y" * 100)), 40)
    assert line == f" 3  {'y' * 29}…", "the layout stays"


def test_a_time_is_whole_if_shorter_cells_make_room_for_it():
    made = "2026-11-20T09:00:36Z"
    growing = ScreenTable(pa.schema([(each, pa.string()) for each in ("a", "made", "b")]), how=HOW)
    long = pa.table({"a": ["a" * 30], "made": [made], "b": ["b" * 30]})
    assert list(growing.lines(long, 60))[1].split() == ["a" * 15 + "…", made, "b" * 15 + "…"]
    none = pa.table({"a": ["a"], "made": pa.array([None], pa.string()), "b": ["b"]})
    assert list(growing.lines(none, 60)) == [f"{'a':<16}  {'NULL':<20}  b"], "the layout stays"
    assert list(growing.lines(long, 44))[-1].split() == ["a" * 9 + "…", made, "b" * 9 + "…"]
    assert list(growing.lines(long, 43))[-1].split() == [
        "a" * 11 + "…",
        "2026-11-20T…",
        "b" * 11 + "…",
    ]


def test_the_header_is_repeated_where_other_columns_are_shown():
    names = [f"column_{each}" for each in range(6)]
    growing = ScreenTable(pa.schema([(each, pa.string()) for each in names]), how=HOW)
    first = list(growing.lines(pa.table({each: ["a"] for each in names}), 60))
    assert first[0].split() == names
    later = list(growing.lines(pa.table({each: ["b" * 40] for each in names}), 60))
    assert later[0].split() == ["column_0", "column_1", "…", "column_4", "column_5"]
    assert later[-1].endswith(HOW)
    assert len(list(growing.lines(pa.table({each: ["c"] for each in names}), 60))) == 1


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_screen(width):
    growing = table()
    for length in (1, 50, 9, 200):
        lines = growing.lines(rows((10**length % 2**62, "z" * length)), width)
        assert all(len(each) <= width for each in lines if not each.endswith(HOW))


def test_all_rows_in_one_batch_are_the_same_table():
    whole = rows((1, "view"), (20, "click"))
    assert list(screen_table(whole, 80, how=HOW)) == list(table().lines(whole, 80))


def shown(batches, capsysbinary, **how):
    write_rows(batches, rows((1, "a")).schema, OutputFormat.TABLE, **how)
    return capsysbinary.readouterr().out.decode().splitlines()


def test_batches_that_end_are_one_table(capsysbinary):
    pieces = [*rows((1, "a")).to_batches(), *rows((1_000, "b")).to_batches()]
    assert shown(pieces, capsysbinary) == ["  id  name", "   1  a", "1000  b"]
    assert shown([], capsysbinary) == ["no rows"]


def test_rows_without_an_end_are_shown_as_they_come(capsysbinary):
    def endless():
        yield from rows((1, "a")).to_batches()
        assert capsysbinary.readouterr().out.decode().splitlines() == ["id  name", " 1  a"]
        yield from rows((1_000, "b")).to_batches()

    assert shown(endless(), capsysbinary, is_endless=True) == ["1000  b"]


def test_rows_that_were_found_before_an_interruption_are_shown(capsysbinary):
    def interrupted():
        yield from rows((1, "a")).to_batches()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shown(interrupted(), capsysbinary)
    assert capsysbinary.readouterr().out.decode().splitlines() == ["id  name", " 1  a"]
