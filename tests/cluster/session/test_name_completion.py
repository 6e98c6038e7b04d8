"""Names of tables in IPython: as its completer gives them, in its terminal and in notebooks."""

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import fluss
from fluss.errors import RequestTimeoutError
from fluss.session.name_completion import names_begun, register_in_ipython


@pytest.fixture
def shell(monkeypatch):
    made = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: made)
    register_in_ipython()
    register_in_ipython()
    return made


@pytest.fixture
def tables(session, rows):
    for name in ("orders", "orders_old", "people"):
        session.create_table(name, rows, buckets=1)
    return session


def completed(shell, line):
    with provisionalcompleter():
        return sorted(each.text for each in shell.Completer.completions(line, len(line)))


def test_names_complete_in_ipython(shell, tables):
    shell.push({"session": tables, "s": tables})
    database = tables.database
    assert completed(shell, 's.table("ord') == ["orders", "orders_old"]
    assert completed(shell, f'session.table("{database}.p') == [f"{database}.people"]
    assert f"{database}.orders" in completed(shell, f'pl.scan_fluss("{database[:8]}')
    assert completed(shell, f"con.sql(\"FROM fluss('{database}.peo") == [f"{database}.people"]
    matchers = shell.Completer.custom_matchers
    assert sum(hasattr(each, "is_of_fluss") for each in matchers) == 1


def test_options_complete_in_ipython(shell, tables):
    shell.push({"t": tables.table("orders")})
    options = completed(shell, "t.scan(")
    assert {"columns=", "filter=", "tail=", "with_metadata="} <= set(options)
    assert "filter=" in completed(shell, "t.scan(fil")


@pytest.mark.parametrize("line", ['x.table("o', 'closed.table("o', "session.table(o", '"o', ""])
def test_nothing_is_completed_where_no_name_is_begun(cluster, tables, line):
    closed = fluss.connect(f"fluss://{cluster.bootstrap}")
    closed.close()
    assert names_begun(line, {"session": tables, "x": object(), "closed": closed}) == []


def test_a_server_that_does_not_answer_has_no_names(tables, monkeypatch):
    def never(_):
        raise RequestTimeoutError("no answer")

    monkeypatch.setattr("fluss.session.name_completion.within_moments", never)
    assert names_begun('s.table("o', {"s": tables}) == []
