"""Errors keep their facts across processes, and a server's answer becomes the right one."""

import copy
import pickle

import pytest

import fluss.errors
from fluss.error_codes import ErrorCode
from fluss.errors import (
    MESSAGE_CHARS_MAX,
    SERVER_TRACE_CHARS_MAX,
    AuthenticationError,
    ConnectError,
    CorruptBatchError,
    FlussError,
    LeaderChangedError,
    ServerError,
    TableNotFoundError,
    error_from_code,
)

CLASSES = [
    each
    for each in vars(fluss.errors).values()
    if isinstance(each, type) and issubclass(each, FlussError)
]

TRACE = """\
org.apache.fluss.exception.FlussRuntimeException: Failed to get metadata of some tables
\tat org.apache.fluss.server.RpcServiceBase.metadata(RpcServiceBase.java:312) ~[fluss.jar:?]
\tat java.base/java.lang.Thread.run(Thread.java:840)
\tSuppressed: java.io.IOException: not this one
\t\tat org.apache.fluss.Closer.close(Closer.java:1)
\tCaused by: java.lang.IllegalStateException: nor this one
Caused by: java.util.concurrent.CompletionException: org.apache.fluss.exception.TableNotExistException: \
Table 'fluss.nope'
does not exist.
\tat org.apache.fluss.server.Coordinator$Inner.lambda$get$3(Coordinator.java:7)
\t... 12 more"""


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_is_the_same_after_a_trip_between_processes(cls):
    error = cls("It failed.", 21, hint="Try.", server_trace="at X", table="db.t", bucket=3)
    error.add_note("seen on the way")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(twin) is cls
        assert vars(twin) == vars(error)
        assert str(twin) == "It failed.\n  hint: Try."
        assert (twin.table, twin.bucket) == ("db.t", 3)
        assert twin.__notes__ == ["seen on the way"]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_of_the_client_carries_a_code_that_exists(cls):
    error = cls("It failed.")
    assert error.error_code == cls.default_code
    assert ErrorCode(error.error_code) is not ErrorCode.NONE
    assert error.is_retriable == cls.retriable


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_whether_trying_again_helps_is_decided_by_the_code_that_is_given(code):
    error = FlussError("It failed.", code)
    assert error.is_retriable == code.is_retriable
    assert pickle.loads(pickle.dumps(error)).is_retriable == code.is_retriable  # noqa: S301 - our own bytes
    assert error.with_context(row=1).is_retriable == code.is_retriable


def test_a_class_decides_about_its_own_code():
    assert CorruptBatchError("A batch is damaged.").is_retriable is False
    assert CorruptBatchError("A batch is damaged.", 14).is_retriable is False
    assert ConnectError("It hung up.", -2).is_retriable is True
    assert not FlussError("From the future.", 4711).is_retriable


def test_a_missing_fact_is_a_missing_attribute():
    with pytest.raises(AttributeError, match=r"TableNotFoundError.*bucket"):
        _ = TableNotFoundError("It failed.", table="db.t").bucket


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_the_class_of_a_code_knows_whether_trying_again_helps(code):
    error = error_from_code(code, "It failed.")
    if code in {ErrorCode.NONE, ErrorCode.CLIENT_ERROR}:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.error_code == code
    assert type(error).retriable == code.is_retriable
    assert type(error).refresh_metadata == code.refreshes_metadata
    assert pickle.loads(pickle.dumps(error)).error_code == code  # noqa: S301 - our own bytes


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_default_code_of_a_server_side_class_is_one_of_its_codes(cls):
    born_here = {-2, 3, 14}  # the client's own, and its complaints about bytes
    if cls.default_code in born_here:
        return
    made = type(error_from_code(cls.default_code))
    assert issubclass(cls, made)


def test_the_facts_of_the_caller_are_attributes():
    error = error_from_code(7, "No such table.", table="db.t", hint="Create it.")
    assert isinstance(error, TableNotFoundError)
    assert (error.table, error.hint) == ("db.t", "Create it.")


@pytest.mark.parametrize("code", [75, 4711, -3, -(2**31)])
def test_an_unknown_code_is_an_unknown_error_that_keeps_its_number(code):
    error = error_from_code(code, "From the future.")
    assert type(error) is ServerError
    assert (error.error_code, error.server_code) == (-1, code)
    assert not error.is_retriable


@pytest.mark.parametrize("code", [0, -2])
def test_a_code_that_no_server_should_send_is_an_unknown_error(code):
    assert type(error_from_code(code)) is ServerError
    assert error_from_code(code).server_code == code


@pytest.mark.parametrize("nothing", [None, "", "  \n"])
def test_an_answer_without_a_text_gets_the_sentence_of_its_code(nothing):
    assert str(error_from_code(12, nothing)) == ErrorCode(12).sentence
    assert isinstance(error_from_code(12, nothing), LeaderChangedError)


def test_a_java_trace_is_kept_aside_and_its_root_cause_is_the_message():
    error = error_from_code(-1, TRACE)
    assert str(error) == "Table 'fluss.nope'\ndoes not exist."
    assert error.server_trace == TRACE


def test_a_trace_that_is_cut_off_anywhere_still_gives_a_sentence():
    for length in range(1, len(TRACE)):
        message = error_from_code(-1, TRACE[:length]).message
        assert message
        assert "\t" not in message
        assert not message.startswith(("Caused by", "..."))


def test_a_cause_that_is_cut_off_before_its_sentence_gives_way_to_the_one_above():
    head = TRACE[: TRACE.index("Caused by: java") + len("Caused by: java.util.conc")]
    assert error_from_code(-1, head).message == "Failed to get metadata of some tables"


def test_an_exception_without_a_sentence_gives_its_name():
    error = error_from_code(-1, "java.lang.NullPointerException\n\tat a.B.c(B.java:1)")
    assert error.message == "NullPointerException"


@pytest.mark.parametrize(
    "plain",
    ["db.Events: no such partition", "look at a.b(c)", "Caused by the weather", "two\nlines"],
)
def test_an_ordinary_sentence_is_left_alone(plain):
    error = error_from_code(46, plain)
    assert isinstance(error, AuthenticationError)
    assert (error.message, error.server_trace) == (plain, None)


def test_what_a_hostile_server_says_is_kept_within_limits():
    error = error_from_code(-1, "java.lang.Error: " + "x" * 10**6 + "\n\tat a.b(c)")
    assert len(error.message) <= MESSAGE_CHARS_MAX + 3
    error = error_from_code(-1, "a.BError: no\n" + "\tat a.b(c)\n" * 10**5)
    assert len(error.server_trace) <= SERVER_TRACE_CHARS_MAX
    assert error.message == "no"


def test_a_table_that_is_being_created_is_asked_for_again():
    text = "com.fasterxml.MismatchedInputException: No content to map due to end-of-input\n at [x]"
    error = error_from_code(-1, text)
    assert error.is_retriable
    assert error.error_code == -1
    assert not error_from_code(-1, "No such thing").is_retriable
