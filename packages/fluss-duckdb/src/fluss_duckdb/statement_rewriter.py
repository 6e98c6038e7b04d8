"""Rewrites statements for DuckDB: each `fluss(...)` becomes the name of a view.

Parameters inside a call are evaluated here and removed from the list; the others keep their order.
A name `fluss.db.events` stays as it is, and its table is attached. Such a name may be something
else, a column for example, so an error about it is raised only if DuckDB does not find it either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb

from fluss.errors import FlussError, InvalidValueError
from fluss_duckdb.call_finder import (
    Argument,
    Call,
    Parameter,
    find_references,
    keeps_text,
    may_reference,
    parameters_of,
    substituted,
)
from fluss_duckdb.statements import Statement
from fluss_duckdb.table_reference import python_value, reference_of_call, reference_of_name
from fluss_duckdb.view_catalog import Catalog

Parameters = Sequence[Any] | Mapping[str, Any] | None

_QUOTED: Final[Mapping[str | None, str]] = {
    "filter": "write the condition as a text, its quotes doubled: filter := 'kind = ''a'''; or "
    "write it after WHERE",
    None: "write text in single quotes: fluss('database.table', start := 'earliest')",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A text, its parameters, and the errors about names that DuckDB may not find."""

    sql: str
    parameters: Parameters = None
    missing: tuple[FlussError, ...] = field(default=())
    has_references: bool = False


def rewritten(
    catalog: Catalog,
    sql: str,
    parameters: Parameters,
    statement: Statement,
    *,
    is_repeated: bool = False,
) -> Rewritten:
    """Rewrite a text for DuckDB.

    Args:
        catalog: The tables.
        sql: One statement or several.
        parameters: Their parameters.
        statement: The running statement.
        is_repeated: Whether it runs once for each of several lists of parameters.

    Raises:
        FlussError: A call names no existing table, or has options that do not fit.
    """
    plain = catalog.plain_names()
    if plain is None and not may_reference(sql, catalog.name):
        return Rewritten(sql=sql, parameters=parameters)
    references = find_references(sql, catalog.name, plain)
    keep = keeps_text(sql)
    used: list[Parameter] = []
    pieces: list[tuple[int, int, str]] = []
    missing: list[FlussError] = []
    for reference in references:
        if isinstance(reference, Call):
            if is_repeated and any(argument.parameters for argument in reference.arguments):
                raise _no_value("a call of fluss(...) in executemany() has a parameter")
            values = _Values(catalog, reference, parameters)
            name = catalog.attach(
                reference_of_call(reference, catalog.session, values.of), statement, keep=keep
            )
            pieces.append((reference.start, reference.stop, name))
            used += [found for argument in reference.arguments for found in argument.parameters]
            continue
        try:
            name = catalog.attach(
                reference_of_name(reference, catalog.session), statement, keep=keep
            )
            if reference.is_plain and reference.database.lower() == catalog.name.lower():
                # DuckDB cannot tell the database `fluss` from the catalog `fluss`.
                pieces.append((reference.start, reference.stop, name))
        except FlussError as error:
            missing.append(error)
    rest, renamed = _left_over(sql, parameters, used)
    return Rewritten(
        sql=substituted(sql, [*pieces, *renamed]) if pieces else sql,
        parameters=rest,
        missing=tuple(missing),
        has_references=bool(references),
    )


class _Values:
    """Evaluates the arguments of one call."""

    def __init__(self, catalog: Catalog, call: Call, parameters: Parameters) -> None:
        self._catalog = catalog
        self._arguments = {each.sql: each for each in call.arguments}
        self._parameters = parameters

    def of(self, sql: str) -> Any:
        argument = self._arguments[sql]
        given = self._given(argument)
        try:
            return python_value(self._catalog.value(sql, given))
        except duckdb.Error as error:
            what = f"The option {argument.name!r}" if argument.name else "The table's name"
            reason = str(error).partition("\n")[0]
            raise InvalidValueError(
                f"{what} in a call of fluss(...) is {sql}, which is no constant: {reason}",
                hint=_QUOTED.get(argument.name, _QUOTED[None]),
                option=argument.name,
            ) from None

    def _given(self, argument: Argument) -> Any:
        if not argument.parameters:
            return None
        if self._parameters is None:
            raise _no_value(f"{argument.sql} in a call of fluss(...) has no value yet")
        try:
            if isinstance(self._parameters, Mapping):
                named = {str(each.name) for each in argument.parameters}
                return {name: self._parameters[name] for name in named}
            if all(isinstance(each.name, int) for each in argument.parameters):
                return [self._parameters[int(each.name)] for each in argument.parameters]
            # DuckDB takes the values of $1 and $2 by their names as well.
            numbers = {int(each.name) for each in argument.parameters}
            return {str(number): self._parameters[number - 1] for number in numbers}
        except (LookupError, ValueError):
            raise _no_value(f"{argument.sql} in a call of fluss(...) is given no value") from None


def _left_over(
    sql: str, parameters: Parameters, used: Sequence[Parameter]
) -> tuple[Parameters, list[tuple[int, int, str]]]:
    """Return the parameters that the statement still has, and their new names in its text."""
    if not used or parameters is None:
        return parameters, []
    starts = {each.start for each in used}
    left = [each for each in parameters_of(sql) if each.start not in starts]
    if isinstance(parameters, Mapping):
        gone = {str(each.name) for each in used} - {str(each.name) for each in left}
        return {key: value for key, value in parameters.items() if key not in gone}, []
    if all(isinstance(each.name, int) for each in used):
        numbers = {each.name for each in used}
        return [value for index, value in enumerate(parameters) if index not in numbers], []
    numbers_left = sorted({int(each.name) for each in left})
    new_number = {number: position for position, number in enumerate(numbers_left, start=1)}
    renamed = [(each.start, each.stop, f"${new_number[int(each.name)]}") for each in left]
    return [parameters[number - 1] for number in numbers_left], renamed


def _no_value(what: str) -> InvalidValueError:
    return InvalidValueError(
        f"The table of a statement and its options must be known before it is prepared: {what}.",
        hint="pass the value with execute(sql, [...]), or write it into the call",
    )
