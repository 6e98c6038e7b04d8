"""The messages that carry records, keys and values: read and written without copying those.

Each is a frozen dataclass with the field names of the protocol, and a layout in capitals beside it:
`FETCH_LOG_RESPONSE.read(body)` gives a `FetchLogResponse`, `FETCH_LOG_RESPONSE.write(response)` a
list of buffers. The same pair serves the side that sends and the side that receives. Records are
tuples of buffers: one slice of the frame when read, as many buffers as one likes when written. What
the records hold is the business of `records`; all other messages are left to protobuf
(`wire.messages`).
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
