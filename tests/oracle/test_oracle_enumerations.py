"""Error codes and change types: the same numbers and names as in Java."""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.model.change_type import ChangeType


def test_every_error_of_java_has_our_name(oracle, compare):
    errors = oracle.enumerations().errors
    ours = [ErrorCode(code).name for code, *_ in errors]
    compare.others("error codes", errors, ours=ours, java=[name for _, name, *_ in errors])


def test_the_kinds_of_change_are_those_of_java(oracle, compare):
    changes = oracle.enumerations().change_types
    ours = [(int(each), each.short_string()) for each in ChangeType]
    java = [(number, short) for number, _, short in changes]
    compare.others("change types", changes, ours=ours, java=java)
