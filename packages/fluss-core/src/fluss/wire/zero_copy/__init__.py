"""The messages with records, keys and values, read and written without copying these.

Each is a frozen dataclass with the field names of the protocol, and has a layout in capitals:
`FETCH_LOG_RESPONSE.read(body)` returns a `FetchLogResponse`, `FETCH_LOG_RESPONSE.write(response)` a
list of buffers, for senders and receivers alike. Records are tuples of buffers: one slice of the
frame when read, any number when written. `records` knows what they hold; all other messages are
left to protobuf (`wire.messages`).
"""

from fluss.wire.zero_copy.fetch_log import (
    FETCH_LOG_RESPONSE,
    FetchedBucket,
    FetchedTable,
    FetchLogResponse,
    RemoteLogFetchInfo,
    RemoteLogSegment,
)
from fluss.wire.zero_copy.lookup_values import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    PREFIX_LOOKUP_REQUEST,
    PREFIX_LOOKUP_RESPONSE,
    LookedUpBucket,
    LookupBucket,
    LookupRequest,
    LookupResponse,
    PrefixLookedUpBucket,
    PrefixLookupBucket,
    PrefixLookupRequest,
    PrefixLookupResponse,
)
from fluss.wire.zero_copy.record_batches import (
    PRODUCE_LOG_REQUEST,
    PUT_KV_REQUEST,
    ProduceLogRequest,
    PutKvRequest,
    WrittenBucket,
)
from fluss.wire.zero_copy.scan_batches import (
    LIMIT_SCAN_RESPONSE,
    SCAN_KV_RESPONSE,
    LimitScanResponse,
    ScanKvResponse,
)

__all__ = [
    "FETCH_LOG_RESPONSE",
    "LIMIT_SCAN_RESPONSE",
    "LOOKUP_REQUEST",
    "LOOKUP_RESPONSE",
    "PREFIX_LOOKUP_REQUEST",
    "PREFIX_LOOKUP_RESPONSE",
    "PRODUCE_LOG_REQUEST",
    "PUT_KV_REQUEST",
    "SCAN_KV_RESPONSE",
    "FetchLogResponse",
    "FetchedBucket",
    "FetchedTable",
    "LimitScanResponse",
    "LookedUpBucket",
    "LookupBucket",
    "LookupRequest",
    "LookupResponse",
    "PrefixLookedUpBucket",
    "PrefixLookupBucket",
    "PrefixLookupRequest",
    "PrefixLookupResponse",
    "ProduceLogRequest",
    "PutKvRequest",
    "RemoteLogFetchInfo",
    "RemoteLogSegment",
    "ScanKvResponse",
    "WrittenBucket",
]
