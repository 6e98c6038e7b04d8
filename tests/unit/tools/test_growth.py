"""The growth of a cost is its exponent; tables, plots and the page hold what was found."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks._growth_figures import (
    WORSE,
    Figure,
    Work,
    duration,
    growth,
    markdown_table,
    table_rows,
    with_block,
)
from benchmarks._growth_plots import draw

CALL = Work(name="plan")
ROW = Work(name="append", unit="row", is_counted=True)
AXIS = SimpleNamespace(name="buckets")


def figures(work, costs):
    return [Figure(work=work, size=size, seconds=2 * cpu, cpu=cpu) for size, cpu in costs.items()]


@pytest.mark.parametrize(
    ("work", "costs", "expected"),
    [
        (CALL, {1: 0.2, 10: 0.2, 100: 0.2}, 0.0),
        (CALL, {1: 0.1, 10: 0.2, 100: 2.0}, 1.0),
        (CALL, {100: 200.0, 10: 2.0}, 2.0),  # in any order
        (ROW, {10: 1e-6, 1000: 1e-6}, 1.0),  # each row costs the same
        (ROW, {10: 1e-6, 1000: 1e-4}, 2.0),  # each row costs as much as there are rows
    ],
)
def test_growth_is_the_exponent_of_the_whole_cost(work, costs, expected):
    assert growth(figures(work, costs)) == pytest.approx(expected)


def test_growth_is_not_guessed():
    assert growth([]) is None
    assert growth(figures(CALL, {1: 0.2})) is None
    assert growth(figures(CALL, {1: 0.0, 10: 0.2})) is None  # the system reports no time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (2.5e-8, "25 ns"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1 µs"),
        (0.00123, "1.23 ms"),
        (0.9999, "1 s"),
        (12.34, "12.3 s"),
        (1234.0, "1234 s"),
    ],
)
def test_a_time_has_the_unit_that_fits(seconds, text):
    assert duration(seconds) == text


def test_a_table_has_a_line_for_each_work_and_names_what_grows_too_fast():
    quick, slow = figures(CALL, {1: 1e-3, 64: 2e-3}), figures(Work(name="read"), {1: 1e-3, 64: 8.0})
    late = figures(Work(name="late"), {64: 1.0})
    assert table_rows(AXIS, [*quick, *slow, *late]) == [
        ["with buckets:", "1", "64", "growth", ""],
        ["plan, per call", "2 ms (1 ms)", "4 ms (2 ms)", "0.17", ""],
        ["read, per call", "2 ms (1 ms)", "16 s (8 s)", "2.16", WORSE],
        ["late, per call", "", "2 s (1 s)", "", ""],
    ]


def test_a_table_of_a_page_has_one_column_for_growth():
    rows = [
        ["with x:", "1", "growth", ""],
        ["plan", "2 ms", "1.50", WORSE],
        ["read", "1 s", "", ""],
    ]
    assert markdown_table(rows).splitlines() == [
        "| with x: | 1 | growth |",
        "|---|---|---|",
        f"| plan | 2 ms | 1.50 {WORSE} |",
        "| read | 1 s |  |",
    ]


def test_a_block_of_a_page_is_replaced_and_nothing_else():
    page = "before\n<!-- rows -->\nold\nlines\n<!-- end -->\n<!-- keys -->\n<!-- end -->\nafter\n"
    changed = with_block(page, "rows", r"new \1")
    assert changed == page.replace("old\nlines", r"new \1")
    assert with_block(changed, "keys", "x").endswith("<!-- keys -->\nx\n<!-- end -->\nafter\n")
    with pytest.raises(ValueError, match="0 blocks named columns"):
        with_block(page, "columns", "x")


def test_the_same_figures_are_the_same_picture(tmp_path):
    found = [*figures(CALL, {1: 1e-3, 10: 2e-3}), *figures(ROW, {1: 1e-6, 10: 1e-6})]
    for name in ("one.svg", "two.svg"):
        draw(AXIS, found, tmp_path / name)
    one = (tmp_path / "one.svg").read_text()
    assert one == (tmp_path / "two.svg").read_text()
    assert "<svg" in one
    draw(AXIS, figures(CALL, {1: 1e-3, 10: 3e-3}), tmp_path / "two.svg")
    assert one != (tmp_path / "two.svg").read_text()
