"""The cluster options of `fluss`, and the session or table that a command opens with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import typer

import fluss
from fluss.session import Session, Table

URL_VARIABLE: Final = "FLUSS_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The cluster that the options before the command name, or the environment.

    Args:
        given_url: The URL of `--url`.
        profile: The profile of `--profile`.
    """

    given_url: str | None
    profile: str | None

    @property
    def is_given(self) -> bool:
        """Whether an option names the cluster, not only the environment."""
        return self.given_url is not None or self.profile is not None

    @property
    def url(self) -> str | None:
        """The URL of `--url`, or of FLUSS_URL where no option names the cluster."""
        return self.given_url if self.is_given else os.environ.get(URL_VARIABLE) or None

    @contextmanager
    def session(self, url: str | None = None) -> Iterator[Session]:
        """Open a session for one command.

        Args:
            url: A URL among the command's arguments; it replaces FLUSS_URL.

        Raises:
            BadParameter: `--url` names a cluster as well.
        """
        if url is not None and self.given_url is not None:
            raise typer.BadParameter(
                "--url and the URL of the table both name a cluster; leave one of them out"
            )
        with fluss.connect(url or self.url, profile=self.profile) as session:
            yield session

    @contextmanager
    def named(self, name: str) -> Iterator[tuple[Session, str]]:
        """Open a session, and return the name in it of a table given by name or by URL."""
        if not is_url(name):
            with self.session() as session:
                yield session, name
            return
        with self.session(name) as session:
            yield session, str(session.path_of())

    @contextmanager
    def table(self, name: str) -> Iterator[Table]:
        """Open a table by `database.table` or by its URL."""
        if is_url(name):
            with self.session(name) as session:
                yield session.table()
        else:
            with self.session() as session:
                yield session.table(name)


def is_url(name: str) -> bool:
    """Whether the name of a table is a URL."""
    return "://" in name or name.startswith("embedded:")
