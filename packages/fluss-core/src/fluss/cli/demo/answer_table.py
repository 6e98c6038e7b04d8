"""What the engines answered, as a table beside the shop's books, and the programs that asked."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fluss.cli.demo.engine_answers import Answer


def print_answers(
    given: Sequence[Answer], expected: Sequence[tuple[str, Decimal]], console: Console
) -> bool:
    """Print the answers, and return whether all are equal to the books."""
    console.print("\nRevenue by country: orders joined with customers", style="bold")
    table = RichTable(box=None)
    table.add_column("country")
    for name in ("the books", *(answer.engine for answer in given)):
        table.add_column(name, justify="right", no_wrap=True)
    for country, spent in expected:
        figures = (dict(answer.rows).get(country) for answer in given)
        table.add_row(country, _money(spent), *map(_money, figures))
    times = (f"{answer.seconds:.2f} s" for answer in given)
    table.add_row("took", "", *times, style="dim")
    console.print(table)
    wrong = [answer.engine for answer in given if answer.rows != list(expected)]
    verdict = f"wrong: {', '.join(wrong)}" if wrong else "all as in the books"
    console.print(f"\n{len(given)} engines asked; {verdict}.")
    return not wrong


def print_programs(given: Sequence[Answer], console: Console) -> None:
    """Print the programs of the engines, as lines to copy."""
    for answer in given:
        console.print(Text(f"\n# {answer.engine}\n{answer.lines.rstrip()}"), soft_wrap=True)


def _money(spent: Decimal | None) -> str:
    return "none" if spent is None else f"{spent:,.0f}"
