"""The synchronous door: `fluss.connect(url)` gives a `Session`, with tables and scans.

Rule: names for people, one line each where that is possible; knows the connector and the client,
and decides nothing that an engine's adapter would have to decide again.
"""

from fluss.connection import config_sources as config
from fluss.net.cancellation import Cancellation
from fluss.session.follow import Follow
from fluss.session.scan import Scan
from fluss.session.session import Session, connect
from fluss.session.source import TableName, TableSource, source_of
from fluss.session.table import Table

__all__ = [
    "Cancellation",
    "Follow",
    "Scan",
    "Session",
    "Table",
    "TableName",
    "TableSource",
    "config",
    "connect",
    "source_of",
]
