"""One query in every installed engine: what did customers spend, by country?

An engine's package provides its program by the entry point group `fluss.demo`: lines of Python that
assign their result to `answer`. The demo prints exactly the lines that ran.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Final

GROUP: Final = "fluss.demo"

# {url} is the address of the cluster, {database} the shop's database.
_PANDAS: Final = """\
import pandas as pd
import fluss.pandas

shop = "{url}/{database}"
orders = pd.read_fluss(f"{{shop}}.orders").set_index("customer")
customers = pd.read_fluss(f"{{shop}}.customers").set_index("id")
both = orders.join(customers, how="inner")
answer = both.groupby("country")["amount"].sum().items()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of one engine.

    Args:
        engine: Its name.
        lines: The program.
        rows: Countries and the sums spent there, sorted.
        seconds: How long the program ran, including all reads from the server.
    """

    engine: str
    lines: str
    rows: list[tuple[str, Decimal]]
    seconds: float


def answers(url: str, database: str) -> Iterator[Answer]:
    """Run the query in every installed engine."""
    for engine, template in _programs().items():
        lines = template.format(url=url, database=database)
        program = compile(lines, f"<{engine}>", "exec")
        _run(program)  # the first run imports the engine
        began = time.perf_counter()
        found = _run(program)
        seconds = time.perf_counter() - began
        rows = sorted((str(country), Decimal(spent)) for country, spent in found)
        yield Answer(engine=engine, lines=lines, rows=rows, seconds=seconds)


def _programs() -> dict[str, str]:
    programs = {point.name: str(point.load()) for point in entry_points(group=GROUP)}
    if find_spec("pandas") is not None:
        programs["pandas"] = _PANDAS
    return dict(sorted(programs.items()))


def _run(program: Any) -> Any:
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - our own lines, run as they are printed
    return names["answer"]
