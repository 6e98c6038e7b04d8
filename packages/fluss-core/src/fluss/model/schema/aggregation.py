"""How a column of a table with the merge engine `aggregation` combines two values.

Only the function's name, parameters and types are here; servers do the arithmetic. The types are
checked when a table is created (Java: `AggFunctionType`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from fluss.errors import InvalidSchemaError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.string_map import StringMap
from fluss.model.types import data_type as t
from fluss.model.types.data_type import DATA_TYPES, BooleanType, BytesType, DataType

DELIMITER = "delimiter"

_NUMBERS: tuple[type[DataType], ...] = (t.IntegerFamily, t.FloatFamily, t.DecimalType)
_TIMES: tuple[type[DataType], ...] = (t.DateType, t.TimeType, t.TimestampFamily)


class AggFunctionType(StrEnum):
    """The functions that Fluss knows; the value is the name in its JSON."""

    SUM = "sum"
    PRODUCT = "product"
    MAX = "max"
    MIN = "min"
    LAST_VALUE = "last_value"
    LAST_VALUE_IGNORE_NULLS = "last_value_ignore_nulls"
    FIRST_VALUE = "first_value"
    FIRST_VALUE_IGNORE_NULLS = "first_value_ignore_nulls"
    LISTAGG = "listagg"
    STRING_AGG = "string_agg"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    RBM32 = "rbm32"
    RBM64 = "rbm64"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters it takes."""
        return (DELIMITER,) if self in _JOINING else ()

    @property
    def data_types(self) -> tuple[type[DataType], ...]:
        """The types of columns it can combine."""
        combined = _COMBINES.get(self, (DataType,))
        return tuple(each for each in DATA_TYPES if issubclass(each, combined))


_JOINING = (AggFunctionType.LISTAGG, AggFunctionType.STRING_AGG)
_COMBINES: dict[AggFunctionType, tuple[type[DataType], ...]] = {
    AggFunctionType.SUM: _NUMBERS,
    AggFunctionType.PRODUCT: _NUMBERS,
    AggFunctionType.MAX: (*_NUMBERS, t.TextFamily, *_TIMES),
    AggFunctionType.MIN: (*_NUMBERS, t.TextFamily, *_TIMES),
    AggFunctionType.LISTAGG: (t.TextFamily,),
    AggFunctionType.STRING_AGG: (t.TextFamily,),
    AggFunctionType.BOOL_AND: (BooleanType,),
    AggFunctionType.BOOL_OR: (BooleanType,),
    AggFunctionType.RBM32: (BytesType,),
    AggFunctionType.RBM64: (BytesType,),
}


@dataclass(frozen=True, slots=True)
class AggFunction:
    """A function with its parameters: `AggFunction.of("listagg", delimiter="|")`."""

    type: AggFunctionType
    parameters: StringMap = field(default_factory=StringMap)

    @classmethod
    def of(cls, name: str, **parameters: str) -> Self:
        """Return the function of this name; hyphens and capitals do not matter.

        Raises:
            InvalidSchemaError: When Fluss has no such function, or it has no such parameter.
        """
        known = cls.find(name)
        if known is None:
            names = [each.value for each in AggFunctionType]
            raise InvalidSchemaError(
                f"There is no aggregation function {name!r}.",
                hint=did_you_mean(name, names) or f"choose one of {', '.join(names)}",
                name=name,
            )
        function = cls(known, StringMap(parameters, what="aggregation parameters"))
        function.check_parameters()
        return function

    @staticmethod
    def find(name: str) -> AggFunctionType | None:
        """Return the function of this name, or None."""
        folded = name.strip().replace("-", "_").lower()
        return AggFunctionType(folded) if folded in set(AggFunctionType) else None

    def check_parameters(self) -> None:
        """Refuse parameters that the function does not take, and an empty delimiter."""
        for name, value in self.parameters.items():
            if name not in self.type.parameter_names:
                taken = ", ".join(self.type.parameter_names) or "no parameters"
                raise InvalidSchemaError(
                    f"The aggregation function {self.type} has no parameter {name!r}; "
                    f"it takes {taken}.",
                    name=name,
                )
            if not value:
                raise InvalidSchemaError(f"The {name} of {self.type} is empty.", name=name)

    def check_type(self, column: str, data_type: DataType) -> None:
        """Refuse a column whose values the function cannot combine."""
        if not isinstance(data_type, self.type.data_types):
            taken = ", ".join(each.root for each in self.type.data_types)
            raise InvalidSchemaError(
                f"The column {column!r} is {data_type}; {self.type} combines {taken}.",
                column=column,
            )

    def __str__(self) -> str:
        if not self.parameters:
            return self.type.value
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.type.value}({shown})"
