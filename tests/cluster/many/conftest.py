"""A log and a table with a primary key, for tests of writers and readers of many tables."""

from __future__ import annotations

import pytest

from fluss.session import Session, Table

LOG = {"id": "BIGINT", "note": "STRING"}
KEYED = {"id": "BIGINT NOT NULL", "name": "STRING", "age": "INT"}


@pytest.fixture
def log(session: Session) -> Table:
    """The log `clicks`."""
    return session.create_table("clicks", LOG, buckets=2)


@pytest.fixture
def keyed(session: Session) -> Table:
    """The table `users`, whose key is `id`."""
    return session.create_table("users", KEYED, primary_key="id", buckets=2)
