"""The result of a flush of many tables: a `WriteReport` for each table, or one error for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss.write.table_writer import TableOutcome
from fluss.write.write_tally import WriteReport, failed_write

# How many tables the text of an error names.
NAMED_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushReport(Mapping[str, WriteReport]):
    """What was written to each table since the last flush; a mapping from names to reports.

    Attributes:
        tables: The reports, by `database.table`. Tables without rows are missing.
    """

    tables: Mapping[str, WriteReport]

    @property
    def rows(self) -> int:
        """How many rows were written to all tables."""
        return sum(each.rows for each in self.tables.values())

    def __getitem__(self, name: str) -> WriteReport:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __str__(self) -> str:
        if not self.tables:
            return "no rows"
        return "\n".join(f"{name}: {each.rows:,} rows" for name, each in self.tables.items())


def flush_report(outcomes: Iterable[TableOutcome]) -> FlushReport:
    """The report of outcomes; those of failed tables are left out.

    A table may have several outcomes, if its metadata changed between two flushes.
    """
    reports: dict[str, WriteReport] = {}
    for outcome in outcomes:
        name = str(outcome.table.table_path)
        if outcome.failure is None:
            reports[name] = _added(reports.get(name), outcome)
    return FlushReport(tables=MappingProxyType(dict(sorted(reports.items()))))


def _added(before: WriteReport | None, outcome: TableOutcome) -> WriteReport:
    counts = dict(before.counts) if before is not None else {}
    offsets: dict[TableBucket, int] = dict(before.last_offsets) if before is not None else {}
    for kind, number in outcome.counts.items():
        counts[kind] = counts.get(kind, 0) + number
    for bucket, offset in outcome.progress.last_offsets.items():
        offsets[bucket] = max(offset, offsets.get(bucket, -1))
    rows = outcome.progress.acknowledged + (before.rows if before is not None else 0)
    return WriteReport(rows=rows, counts=counts, last_offsets=offsets)


def failed_flush(outcomes: Iterable[TableOutcome]) -> FlussError | None:
    """The error of a flush; None if the rows of all tables were written.

    It is the error of the first failed table with rows in doubt, or else of the first failed table.
    `failures` has the errors of all failed tables, and `delivered` the report of the others.
    """
    outcomes = list(outcomes)
    failures: dict[str, FlussError] = {}
    for outcome in sorted(outcomes, key=lambda each: not each.progress.in_doubt):
        if outcome.failure is not None:
            name = str(outcome.table.table_path)
            failures.setdefault(
                name, failed_write(outcome.table, outcome.failure, outcome.progress)
            )
    if not failures:
        return None
    (_, error), *others = failures.items()
    raised = error.with_context()
    raised.facts |= {"failures": failures, "delivered": flush_report(outcomes)}
    for name, other in others[:NAMED_MAX]:
        raised.add_note(f"{name} failed, too: {other.message}")
    if len(others) > NAMED_MAX:
        raised.add_note(f"{len(others) - NAMED_MAX} more tables failed; see `failures`.")
    delivered = raised.facts["delivered"]
    raised.add_note(f"{delivered.rows:,} rows of {len(delivered)} other tables were delivered.")
    return raised
