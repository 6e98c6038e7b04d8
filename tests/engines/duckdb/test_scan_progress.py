"""The bar of statements that read many rows: all scans of a query count, and a call ends it."""

import io
import sys
import threading

import pytest

import fluss_duckdb

ROWS = 1_000


@pytest.fixture
def calls():
    return []


@pytest.fixture
def con(session, calls):
    def note(rows, rows_max):
        calls.append((rows, rows_max))

    with fluss_duckdb.connect(session=session, progress=note) as opened:
        yield opened


def threads():
    return [each for each in threading.enumerate() if each.name == "fluss-progress"]


def test_a_statement_reports_the_rows_of_its_scans(con, events, calls):
    con.sql(f"SELECT sum(x) FROM fluss('{events.name}')").fetchall()
    assert calls[-1] == (ROWS, ROWS)
    assert not threads()


def test_the_scans_of_a_join_are_added_up(con, events, parted, calls):
    con.sql(
        f"SELECT count(*) FROM fluss('{events.name}') a JOIN fluss('{parted.name}') b USING (id)"
    ).fetchall()
    assert calls[-1] == (2 * ROWS, 2 * ROWS)


def test_each_statement_counts_its_own_rows(con, events, calls):
    for _ in range(2):
        con.sql(f"SELECT sum(x) FROM fluss('{events.name}')").fetchall()
        assert calls[-1] == (ROWS, ROWS)
    scan = events.scan()
    for _ in range(2):  # whose counters go on
        con.fluss(scan).sum("x").fetchall()
        assert calls[-1] == (ROWS, ROWS)


def test_rows_that_are_fetched_later_count_as_well(con, events, calls):
    con.execute(f"SELECT id FROM fluss('{events.name}')").fetchall()
    assert calls[-1][1] == ROWS
    con.execute(f"SELECT id FROM fluss('{events.name}')").fetchone()
    assert not threads(), "the user has the screen"


def test_statements_without_scans_and_failing_ones_report_nothing_wrong(con, events, calls):
    con.sql("SELECT 1").fetchall()
    assert calls == []
    query = f"SELECT CAST(concat('a', id) AS INT) FROM fluss('{events.name}')"
    with pytest.raises(Exception, match="Could not convert"):
        con.sql(query).fetchall()
    assert not threads()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("progress", "is_terminal", "is_shown"),
    [(None, True, True), (None, False, False), (False, True, False)],
)
def test_terminals_have_a_bar_and_pipes_do_not(
    session, events, monkeypatch, progress, is_terminal, is_shown
):
    screen = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("fluss.progress.SILENT_S", 0.0)
    monkeypatch.setattr("fluss.progress.ROWS_MIN", ROWS)
    monkeypatch.delenv("FLUSS_PROGRESS", raising=False)
    with fluss_duckdb.connect(session=session, progress=progress) as con:
        con.sql(f"SELECT sum(x) FROM fluss('{events.name}')").fetchall()
    assert (events.name in screen.getvalue()) is is_shown
