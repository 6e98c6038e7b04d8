"""The errors of catalogs and files become Fluss's own, with what to do and without secrets."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import ForbiddenError, NotInstalledError, OAuthError, UnauthorizedError

from fluss.errors import (
    AuthenticationError,
    AuthorizationError,
    ConnectError,
    CorruptDataError,
    FlussError,
    MissingExtraError,
    SnapshotNotFoundError,
)
from fluss_lake.read_errors import reading_file, secrets_of, unreachable
from tests.unit.lake.tables import schema_of, table_of

TABLE = table_of(schema_of(id="INT"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnauthorizedError("NotAuthorized: bad token"), AuthenticationError),
        (OAuthError("invalid_client"), AuthenticationError),
        (ForbiddenError("no"), AuthorizationError),
        (RuntimeError('FATAL: password authentication failed for user "x"'), AuthenticationError),
        (OSError("AWS Error ACCESS_DENIED during GetObject operation: No"), AuthenticationError),
        (OSError("AWS Error UNKNOWN (HTTP status 400) during HeadObject: No"), AuthenticationError),
        (OSError("AWS Error UNKNOWN (HTTP status 500) during HeadObject: No"), FlussError),
        (
            OSError("AWS Error UNKNOWN: ExpiredToken during GetObject operation"),
            AuthenticationError,
        ),
        (OSError("Connection refused"), ConnectError),
        (RuntimeError("Max retries exceeded with url"), ConnectError),
        (RuntimeError("something else"), FlussError),
        (NotInstalledError("SQLAlchemy support not installed"), MissingExtraError),
    ],
    ids=str,
)
def test_each_becomes_an_error_of_its_kind(error, kind):
    found = unreachable(TABLE, error)
    assert type(found) is kind
    assert "db.t" in found.message
    assert "lake='off'" in found.hint


def test_the_statement_of_a_catalog_in_a_database_is_left_out():
    error = RuntimeError(
        "(sqlite3.OperationalError) no such table: iceberg_tables\n[SQL: SELECT x\nFROM "
        "iceberg_tables]\n(Background on this error at: https://sqlalche.me/e/20/e3q8)"
    )
    text = unreachable(TABLE, error).message
    assert text.endswith(
        "cannot be read: (sqlite3.OperationalError) no such table: iceberg_tables."
    )


def test_secrets_are_taken_out_of_texts():
    properties = {"credential": "id:p@ss", "s3.access-key-id": "AKIA", "uri": "x"}
    secrets = secrets_of(properties.items())
    error = RuntimeError("postgresql://me:0th3r@host refused p@ss, p%40ss and id:p@ss")
    text = str(unreachable(TABLE, error, secrets))
    assert "p@ss" not in text
    assert "p%40ss" not in text
    assert "0th3r" not in text
    assert "me:***@host" in text


def read(path):
    with reading_file(str(path)), pa.OSFile(str(path)) as source:
        return pq.ParquetFile(source).read()


def test_a_file_that_is_missing_or_corrupt_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    with pytest.raises(SnapshotNotFoundError, match=r"rows\.parquet"):
        read(path)
    pq.write_table(pa.table({"id": range(1_000)}), path)
    whole = path.read_bytes()
    for broken in (whole[:-20], whole[:100], b"", b"x" * 500):
        path.write_bytes(broken)
        with pytest.raises(CorruptDataError, match=r"rows\.parquet"):
            read(path)


def test_a_store_that_refuses_is_no_corrupt_file():
    with pytest.raises(OSError, match="AWS"), reading_file("s3://a/b"):
        raise OSError("When reading: AWS Error SLOW_DOWN during GetObject operation")
