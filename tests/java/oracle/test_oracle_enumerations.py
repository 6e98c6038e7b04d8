"""Error codes, API keys and change types: the same numbers, names and meanings as in Java."""

from __future__ import annotations

from fluss.error_codes import ErrorCode
from fluss.errors import error_from_code
from fluss.model.change_type import ChangeType
from fluss.wire.api import ApiKey

# Java retries this one only in its authentication loop, so its class is not retriable.
RETRIED_WHILE_AUTHENTICATING = ErrorCode.RETRIABLE_AUTHENTICATE_EXCEPTION
# Entries that only fluss-core has are newer than Java 0.9.1.
NEWER_VERSIONS = {
    ApiKey.PRODUCE_LOG: 1,
    ApiKey.PUT_KV: 3,
    ApiKey.GET_KV_SNAPSHOT_METADATA: 1,
    ApiKey.ALTER_TABLE: 1,
}


def test_every_error_of_java_has_our_name_and_is_retried_alike(oracle, compare):
    errors = oracle.enumerations().errors
    known = [ErrorCode(code) for code, *_ in errors]
    ours = [(each.name, each.is_retriable, each.refreshes_metadata) for each in known]
    java = [
        (name, retriable or code == RETRIED_WHILE_AUTHENTICATING, refresh)
        for code, name, retriable, refresh in errors
    ]
    compare.others("error codes", errors, ours=ours, java=java)


def test_the_error_of_a_code_is_retried_as_in_java(oracle, compare):
    answers = [each for each in oracle.enumerations().errors if each[1] != "NONE"]
    errors = [error_from_code(code) for code, *_ in answers]
    ours = [(each.is_retriable, each.refresh_metadata) for each in errors]
    java = [
        (retriable or code == RETRIED_WHILE_AUTHENTICATING, refresh)
        for code, _, retriable, refresh in answers
    ]
    compare.others("errors of codes", answers, ours=ours, java=java)


def test_every_api_of_java_has_our_number_name_and_versions(oracle, compare):
    keys = oracle.enumerations().api_keys
    known = [ApiKey(number) for number, *_ in keys]
    ours = [(each.name, each.version_min, each.version_max, each.is_public) for each in known]
    java = [
        (name, lowest, NEWER_VERSIONS.get(ApiKey(number), highest), public)
        for number, name, lowest, highest, public in keys
    ]
    compare.others("API keys", keys, ours=ours, java=java)
    newer = [each.name for each in ApiKey if each not in known]
    assert {ApiKey[each].since for each in newer} == {"1.0"}


def test_the_kinds_of_change_are_those_of_java(oracle, compare):
    changes = oracle.enumerations().change_types
    ours = [(int(each), each.short_string()) for each in ChangeType]
    java = [(number, short) for number, _, short in changes]
    compare.others("change types", changes, ours=ours, java=java)
