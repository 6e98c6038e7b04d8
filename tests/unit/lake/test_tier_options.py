"""What a caller of `tier` passes is checked before any server is asked."""

import inspect
from dataclasses import fields
from types import SimpleNamespace

import pytest

import fluss_lake
from fluss.errors import ConfigError, InvalidNameError, InvalidValueError
from fluss.model.paths import TablePath
from fluss_lake.tiering.range_task import WriteMode
from fluss_lake.tiering.round_driver import RoundOptions
from fluss_lake.tiering.tier_options import _PARSERS, table_paths, worker_options
from fluss_lake.tiering.worker import WorkerOptions


def test_options_reach_the_worker_and_its_rounds():
    made = worker_options({"rows_max": 7, "threads": 3, "round_s_max": 5, "write_mode": None})
    assert (made.rounds.rows_max, made.threads, made.round_s_max) == (7, 3, 5.0)
    assert made.rounds == RoundOptions(rows_max=7)
    assert worker_options({}) == WorkerOptions()


def test_every_option_of_workers_and_rounds_can_be_given():
    of_workers = {each.name for each in fields(WorkerOptions)} - {"rounds", "tables"}
    assert set(_PARSERS) == of_workers | {each.name for each in fields(RoundOptions)}
    assert all(f"`{each}`" in fluss_lake.tier.__doc__ for each in _PARSERS)


@pytest.mark.parametrize("mode", WriteMode)
@pytest.mark.parametrize("kind", [str, WriteMode])
def test_a_write_mode_may_be_a_text(mode, kind):
    assert worker_options({"write_mode": kind(mode)}).rounds.write_mode is mode


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("row_max", "rows_max"), ("thread", "threads"), ("mode", None), ("nows", "now")],
)
def test_an_unknown_option_is_refused_with_the_nearest(given, nearest):
    with pytest.raises(ConfigError, match=f"no option '{given}'") as refused:
        fluss_lake.tier("db.t", **{given: 1})
    assert "The options are write_mode, rows_max," in refused.value.hint
    if nearest is not None:
        assert refused.value.hint.startswith(f"did you mean '{nearest}'?")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("write_mode", "copy-on-writes", "copy-on-write"),
        ("write_mode", "x", "equality-deletes or copy-on-write"),
        ("rows_max", 0, "at least 1"),
        ("rows_max", 1.5, "at least 1"),
        ("threads", True, "at least 1"),
        ("round_s_max", 0, "above 0"),
        ("round_s_max", float("nan"), "above 0"),
        ("skips_lost", "no", "neither True nor False"),
        ("settings", "password=secret", "mapping"),
        ("settings", {"password": 7}, "mapping"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_refused(name, value, why):
    with pytest.raises(InvalidValueError) as refused:
        worker_options({name: value})
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)


def test_names_are_those_of_the_database_of_a_session_or_a_url():
    session = SimpleNamespace(path_of=lambda name: TablePath("shop", name))
    url = "fluss://127.0.0.1:9123/shop"
    for cluster in (session, url):
        assert table_paths("orders", cluster) == {TablePath("shop", "orders")}
        assert len(table_paths(["orders", "users"], cluster)) == 2
    assert table_paths("other.orders", url) == {TablePath("other", "orders")}
    assert table_paths(TablePath("a", "b"), None) == {TablePath("a", "b")}
    with pytest.raises(InvalidNameError, match="'orders' is not the path"):
        table_paths("orders", None)


def test_the_parameters_that_are_suggested_are_those_of_the_function():
    named = set(inspect.signature(fluss_lake.tier).parameters) - {"options"}
    from fluss_lake.tiering.tier_options import _PARAMETERS

    assert named == set(_PARAMETERS)
