"""Where a command finds its table: the session that its options and arguments mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import fluss
from fluss.session.session import Session
from fluss.session.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What was said before the command.

    Args:
        url: The cluster's URL, where one was given.
        profile: A profile of the configuration file.
    """

    url: str | None
    profile: str | None

    @contextmanager
    def session(self, url: str | None = None) -> Iterator[Session]:
        """A session for one command; a URL among its arguments counts more."""
        with fluss.connect(url or self.url, profile=self.profile) as session:
            yield session

    @contextmanager
    def table(self, name: str) -> Iterator[Table]:
        """A table by `database.table` or by its URL."""
        if "://" in name or name.startswith("embedded:"):
            with self.session(name) as session:
                yield session.table()
        else:
            with self.session() as session:
                yield session.table(name)
