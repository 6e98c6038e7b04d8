"""The tree of a pyarrow expression, read from what it pickles to and proven by writing it again.

`pyarrow.compute.Expression` does not expose its tree. It pickles to an Arrow file whose schema's
metadata describes the tree, and whose columns hold its values (Arrow: `compute::Serialize`):

=========================  ================================================================
`call`: function           the arguments follow, then perhaps `options`: column, then `end`
`field_ref`: name          a column
`literal`: column          a value, the first of that column
=========================  ================================================================

pyarrow does not promise that form, so two checks guard it (decision 0014). Once per process a
sample is read: if it is not read as expected, no expression is, and filters are applied by Arrow to
the batches that were read. And every tree is written again with pyarrow's public functions; it
counts where pyarrow finds the result equal to the expression given. What a tree means is in
`records.filter.arrow_expressions`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import UnsupportedOperationError
from fluss.model.predicates.predicate import COMPARISONS, SEARCHES
from fluss.records.arrow.arrow_metadata import follow, table_fields
from fluss.records.arrow.numpy_arrays import texts

DEPTH_MAX: Final = 200
_WORDS: Final = {"call", "end", "field_ref", "literal", "options"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column."""

    name: str
    expression: pc.Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A value."""

    value: pa.Scalar
    expression: pc.Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of Arrow's, and what it is called with; options are those it was given."""

    function: str
    arguments: tuple[Node, ...]
    options: dict[str, Any] = field(default_factory=dict)
    expression: pc.Expression


Node: TypeAlias = Field | Literal | Call

Options = dict[str, Any]


def read_tree(expression: pc.Expression) -> Node:
    """Return the tree of an expression. Each node also has the expression that it stands for.

    Raises:
        UnsupportedOperationError: Something in it is unknown here.
    """
    if not is_form_known():
        raise unfit_expression(
            expression, f"pyarrow {pa.__version__} pickles it in an unknown form"
        )
    return _read_proven(expression)


def fields_of(expression: pc.Expression) -> frozenset[str] | None:
    """Return the columns that an expression names; None if they are unknown."""
    return _read_fields(expression) if is_form_known() else None


@cache
def is_form_known() -> bool:
    """Return whether this pyarrow pickles expressions in the form that is read here."""
    values = texts(["x", None])
    sample = (pc.field("a") > 1) & ~pc.is_in(pc.field("b"), value_set=values)
    try:
        tree = _read_proven(sample)  # which wrote what it read, and compared
        return isinstance(tree, Call) and _read_fields(sample) == frozenset({"a", "b"})
    except (UnsupportedOperationError, AttributeError, LookupError, TypeError, ValueError):
        return False


def _read_proven(expression: pc.Expression) -> Node:
    try:
        _, (pickled,) = expression.__reduce__()
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise unfit_expression(expression, f"pyarrow cannot take it apart ({error})") from error
    try:
        tree = _Reading(expression, pickled).tree()
    except (struct.error, LookupError, UnicodeDecodeError, pa.ArrowException, ValueError) as error:
        why = f"this version of pyarrow writes it otherwise ({error!r})"
        raise unfit_expression(expression, why) from error
    if not tree.expression.equals(expression):
        raise unfit_expression(expression, "it is not the same any more when it was taken apart")
    return tree


def _read_fields(expression: pc.Expression) -> frozenset[str] | None:
    try:
        _, (pickled,) = expression.__reduce__()
        words = list(schema_metadata(pickled))
    except (pa.ArrowException, struct.error, LookupError, ValueError, TypeError):
        return None
    if any(key not in _WORDS for key, _ in words):
        return None
    return frozenset(name for key, name in words if key == "field_ref")


def unfit_expression(expression: pc.Expression, why: str) -> UnsupportedOperationError:
    """Return the error for an expression, or a part of one, that cannot be a filter."""
    shown = str(expression)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
    return UnsupportedOperationError(
        f"The expression {shown!r} cannot be a filter of Fluss's: {why}.",
        hint="Compare columns with values, or apply the expression to the batches that are read.",
    )


class _Reading:
    """Reads one expression; children are finished before what they are part of."""

    def __init__(self, expression: pc.Expression, pickled: pa.Buffer) -> None:
        self._expression = expression
        self._words = list(schema_metadata(pickled))
        self._batch = pa.ipc.open_file(pickled).get_batch(0)

    def tree(self) -> Node:
        open_calls: list[_OpenCall] = []
        done: list[Node] = []  # the whole, once it is finished
        for key, value in self._words:
            if key == "call":
                open_calls.append(_OpenCall(function=value))
                if len(open_calls) > DEPTH_MAX:
                    raise unfit_expression(self._expression, f"it nests deeper than {DEPTH_MAX}")
                continue
            if key == "options":
                open_calls[-1].options = _options(self._scalar(value))
                continue
            node = self._closed(open_calls.pop(), value) if key == "end" else self._leaf(key, value)
            (open_calls[-1].arguments if open_calls else done).append(node)
        (whole,) = done
        return whole

    def _leaf(self, key: str, value: str) -> Node:
        if key == "field_ref":
            return Field(name=value, expression=pc.field(value))
        if key == "literal":
            scalar = self._scalar(value)
            return Literal(value=scalar, expression=pc.scalar(scalar))
        raise unfit_expression(self._expression, "it looks into nested columns")

    def _closed(self, call: _OpenCall, function: str) -> Call:
        given = [each.expression for each in call.arguments]
        again = _written(function, given, call.options) if function == call.function else None
        if again is None:
            raise unfit_expression(self._expression, f"it calls {call.function}")
        return Call(
            function=function,
            arguments=tuple(call.arguments),
            options=call.options,
            expression=again,
        )

    def _scalar(self, column: str) -> pa.Scalar:
        return self._batch.column(int(column))[0]


@dataclass(slots=True, kw_only=True)
class _OpenCall:
    function: str
    arguments: list[Node] = field(default_factory=list)
    options: Options = field(default_factory=dict)


def _options(scalar: pa.StructScalar) -> Options:
    options: Options = {}
    for name, value in scalar.items():
        is_list = isinstance(value, pa.ListScalar | pa.LargeListScalar)
        options[name] = value.values if is_list else value.as_py()
    return options


# --- writing --------------------------------------------------------------------------------------


_PLAIN: Final = frozenset(
    {
        "and_kleene",
        "or_kleene",
        "invert",
        "is_valid",
        "is_nan",
        *(each.arrow for each in COMPARISONS),
    }
)
_SEARCHES: Final = frozenset({"match_like", *(each.arrow for each in SEARCHES)})
NULLS_MATCH: Final = 0
NULLS_SKIPPED: Final = 1


def _written(function: str, arguments: list[Any], options: Options) -> Any:
    """Return the call of a function again; None for a function that is not read."""
    if function in _PLAIN:
        return getattr(pc, function)(*arguments)
    if function in _SEARCHES:
        pattern, ignore_case = options["pattern"], options["ignore_case"]
        return getattr(pc, function)(*arguments, pattern=pattern, ignore_case=ignore_case)
    if function == "is_null":
        return pc.is_null(*arguments, nan_is_null=options["nan_is_null"])
    if function == "is_in":
        skip_nulls = options["null_matching_behavior"] == NULLS_SKIPPED
        return pc.is_in(*arguments, value_set=options["value_set"], skip_nulls=skip_nulls)
    return None


# --- the metadata of the file's schema ------------------------------------------------------------
#
# pyarrow gives metadata as a dict, and here keys come many times, in an order that matters. So they
# are read where they stand: a file begins with `ARROW1`, two bytes of padding, FFFFFFFF, a size and
# a flatbuffer, a Message whose header is a Schema.

_FILE_HEAD: Final = 16
_MESSAGE_HEADER: Final = 2
_SCHEMA_METADATA: Final = 2
_U32 = struct.Struct("<I")


def schema_metadata(file: pa.Buffer) -> Iterator[tuple[str, str]]:
    """The metadata of the schema of an Arrow file, in its order."""
    data = memoryview(file)[_FILE_HEAD:]
    message = follow(data, 0)
    schema = follow(data, _field(data, message, _MESSAGE_HEADER))
    vector = follow(data, _field(data, schema, _SCHEMA_METADATA))
    (count,) = _U32.unpack_from(data, vector)
    for place in range(count):
        pair = follow(data, vector + 4 + 4 * place)
        yield _text(data, _field(data, pair, 0)), _text(data, _field(data, pair, 1))


def _field(data: memoryview, table: int, index: int) -> int:
    position = table_fields(data, table)[index]
    if not position:
        raise LookupError(f"a table of the file lacks field {index}")
    return position


def _text(data: memoryview, position: int) -> str:
    start = follow(data, position)
    (length,) = _U32.unpack_from(data, start)
    return bytes(data[start + 4 : start + 4 + length]).decode()
