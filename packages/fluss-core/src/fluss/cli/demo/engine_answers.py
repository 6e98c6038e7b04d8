"""One question, asked in every engine that is installed: what did customers spend, by country?

An engine's package answers by the entry point group `fluss.demo`: lines of Python that leave their
answer in `answer`. What is printed for a notebook is what ran.
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

orders = pd.read_fluss("{url}/{database}.orders", columns=["customer", "amount"])
customers = pd.read_fluss("{url}/{database}.customers", columns=["id", "country"])
joined = orders.merge(customers, left_on="customer", right_on="id")
answer = joined.groupby("country")["amount"].sum().items()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine said.

    Args:
        engine: Its name.
        lines: What was run.
        rows: Countries and what was spent there, sorted.
        seconds: How long it took, with everything read from the server.
    """

    engine: str
    lines: str
    rows: list[tuple[str, Decimal]]
    seconds: float


def answers(url: str, database: str) -> Iterator[Answer]:
    """Ask every engine that is installed."""
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
    programs = {each.name: str(each.load()) for each in entry_points(group=GROUP)}
    if find_spec("pandas") is not None:
        programs["pandas"] = _PANDAS
    return dict(sorted(programs.items()))


def _run(program: Any) -> Any:
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - our own lines, run as they are printed
    return names["answer"]
