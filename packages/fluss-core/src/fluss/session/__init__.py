"""The synchronous door: `fluss.connect(url)` gives a `Session`, with tables and scans.

Rule: names for people, one line each where that is possible; decides nothing
that an engine's adapter would have to decide again.
"""

from fluss.connection import config_sources as config
from fluss.net.cancellation import Cancellation
from fluss.scan.table_source import TableName
from fluss.session.creating import NewTable
from fluss.session.first_connection import session_for, with_retries
from fluss.session.follow_many import FollowMany
from fluss.session.name_completion import register_in_ipython
from fluss.session.session import Session, connect
from fluss.session.session_scan import Follow, Scan
from fluss.session.session_tables import TablesDiff
from fluss.session.table import Table, open_table
from fluss.session.typed_scan import Change, TypedFollow, TypedScan
from fluss.session.typed_table import TypedTable
from fluss.session.write_many import WriteMany

register_in_ipython()

__all__ = [
    "Cancellation",
    "Change",
    "Follow",
    "FollowMany",
    "NewTable",
    "Scan",
    "Session",
    "Table",
    "TableName",
    "TablesDiff",
    "TypedFollow",
    "TypedScan",
    "TypedTable",
    "WriteMany",
    "config",
    "connect",
    "open_table",
    "session_for",
    "with_retries",
]
