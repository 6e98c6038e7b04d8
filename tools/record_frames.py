"""Writes golden_frames.json: frames of Fluss's own classes, and conversations with a real server.

    python -m tools.record_frames

Needs Java 17 and the jar of the Fluss server. The frames come from tools/FrameOracle.java; for the
conversations a cluster is started, hand-made bytes are sent, and the replies are recorded. Read the
difference before you commit it: a changed file means that Java behaves differently now.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from fluss.wire import messages as m
from fluss.wire.messages import read_message, write_message
from fluss_testkit.artifact import FLUSS_SERVER
from fluss_testkit.java_cluster import JavaCluster
from tests.support.differential.frame_oracle import ask_java

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "unit" / "wire" / "golden_frames.json"
COMMAND = "python -m tools.record_frames"
USER, PASSWORD = "reader", "very secret"
TIMEOUT_S = 20.0
# A server closes the connection on a frame longer than this.
REQUEST_BYTES_MAX = 1024 * 1024

_PATH = m.PbTablePath(database_name="shop", table_name="orders")
REQUESTS = [
    (1000, 0, 0, m.ApiVersionsRequest(client_software_name="fluss", client_software_version="1")),
    (1012, 0, 1, m.MetadataRequest(table_path=[_PATH], partitions_id=[1, 2**40])),
    (
        1014,
        0,
        2**31 - 1,
        m.ProduceLogRequest(
            acks=-1,
            table_id=7,
            timeout_ms=30_000,
            buckets_req=[
                m.PbProduceLogReqForBucket(bucket_id=0, records=bytes(range(40))),
                m.PbProduceLogReqForBucket(partition_id=3, bucket_id=1, records=b""),
            ],
        ),
    ),
    (
        1015,
        0,
        -1,
        m.FetchLogRequest(
            follower_server_id=-1,
            max_bytes=16 << 20,
            max_wait_ms=500,
            min_bytes=1,
            tables_req=[
                m.PbFetchLogReqForTable(
                    table_id=7,
                    projection_pushdown_enabled=True,
                    projected_fields=[0, 2, 300],
                    buckets_req=[
                        m.PbFetchLogReqForBucket(
                            bucket_id=5, fetch_offset=2**33, max_fetch_bytes=1 << 20
                        )
                    ],
                )
            ],
        ),
    ),
    (
        1016,
        1,
        4,
        m.PutKvRequest(
            acks=1,
            table_id=7,
            timeout_ms=1,
            target_columns=[0, 1, 128],
            agg_mode=1,
            buckets_req=[m.PbPutKvReqForBucket(bucket_id=2, records=b"batch")],
        ),
    ),
    (
        1017,
        1,
        5,
        m.LookupRequest(
            table_id=7, buckets_req=[m.PbLookupReqForBucket(bucket_id=2, keys=[b"a", b"", b"\xff"])]
        ),
    ),
    (1038, 0, 6, m.AuthenticateRequest(protocol="PLAIN", token=b"\0user\0password")),
]
ERRORS = [
    (7, "Table 'shop.orders' does not exist."),
    (46, "Authentifizierung fehlgeschlagen: \u00e4\u4e2d"),
    (-1, "java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)"),
]


def main() -> int:
    """Record everything."""
    entries = [*_requests(), *_errors(), *_talks()]
    head = {"fluss": FLUSS_SERVER.version, "command": COMMAND}
    lines = ",\n".join(json.dumps(each, ensure_ascii=True) for each in entries)
    GOLDEN.write_text(f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n')
    return 0


def _requests() -> list[dict[str, Any]]:
    bodies = [write_message(message).hex() for *_, message in REQUESTS]
    frames = ask_java(
        [
            f"request {key} {version} {number} {message.DESCRIPTOR.name} {body}"
            for (key, version, number, message), body in zip(REQUESTS, bodies, strict=True)
        ]
    )
    return [
        {
            "kind": "request",
            "api_key": key,
            "api_version": version,
            "request_id": number,
            "body": body,
            "frame": frame,
        }
        for (key, version, number, _), body, frame in zip(REQUESTS, bodies, frames, strict=True)
    ]


def _errors() -> list[dict[str, Any]]:
    questions = [f"error 17 {code} {text.encode().hex()}" for code, text in ERRORS]
    questions += [f"failure {code} {text.encode().hex()}" for code, text in ERRORS]
    kinds = ["error"] * len(ERRORS) + ["failure"] * len(ERRORS)
    return [
        {"kind": kind, "request_id": 17 if kind == "error" else None, "code": code, "text": text,
         "frame": frame}
        for kind, (code, text), frame in zip(kinds, ERRORS * 2, ask_java(questions), strict=True)
    ]  # fmt: skip


def _talks() -> list[dict[str, Any]]:
    options = {"netty.server.max-request-size": f"{REQUEST_BYTES_MAX}b"}
    with JavaCluster(users={USER: PASSWORD}, options=options) as cluster:
        coordinator = cluster.bootstrap_servers.split(",")[0]
        tablet = _tablet_server(coordinator)
        guarded = cluster.sasl_bootstrap_servers.split(",")[0]
        versions = m.ApiVersionsRequest(client_software_name="x", client_software_version="1")
        path = m.PbTablePath(database_name="fluss", table_name="nope")
        return [
            _talk("versions of a coordinator", coordinator, [_frame(1000, 1, versions)]),
            _talk("versions of a tablet server", tablet, [_frame(1000, 2, versions)]),
            _talk(
                "a missing table",
                tablet,
                [_frame(1007, 3, m.GetTableInfoRequest(table_path=path))],
            ),
            _talk(
                "metadata of a missing table",
                tablet,
                [_frame(1012, 4, m.MetadataRequest(table_path=[path]))],
            ),
            _talk(
                "a frame that is too long",
                tablet,
                [struct.pack(">ihhi", REQUEST_BYTES_MAX + 1, 1000, 0, 5)],
            ),
            _talk(
                "a request before authentication",
                guarded,
                [_frame(1003, 6, m.ListDatabasesRequest())],
            ),
            _talk(
                "authentication: wrong, right, and once more",
                guarded,
                [
                    _frame(1038, 7, _token("PLAIN", f"\0{USER}\0wrong")),
                    _frame(1038, 8, _token("PLAIN", f"\0{USER}\0{PASSWORD}")),
                    _frame(1038, 9, _token("PLAIN", "")),
                    _frame(1038, 10, _token("plain", "anything")),
                ],
            ),
            _talk(
                "authentication: shapes of a token",
                guarded,
                [
                    _frame(1038, 11, _token("PLAIN", f"{USER}\0{PASSWORD}")),
                    _frame(1038, 12, _token("PLAIN", f"\0{USER}\0")),
                    _frame(1038, 13, _token("PLAIN", f"\0\0{PASSWORD}")),
                    _frame(1038, 14, _token("PLAIN", f"other\0{USER}\0{PASSWORD}")),
                    _frame(1038, 15, _token("PLAIN", f"{USER}\0{USER}\0{PASSWORD}")),
                ],
            ),
            _talk(
                "authentication: another mechanism, and lower case",
                guarded,
                [
                    _frame(1038, 16, _token("SCRAM", f"\0{USER}\0{PASSWORD}")),
                    _frame(1038, 17, _token("plain", f"\0{USER}\0{PASSWORD}")),
                    _frame(1038, 18, _token("PLAIN", f"\0{USER}\0{PASSWORD}")),
                ],
            ),
            _talk(
                "authentication without need",
                tablet,
                [
                    _frame(1038, 19, _token("PLAINTEXT", "")),
                    _frame(1038, 20, _token("PLAIN", "\0a\0b")),
                ],
            ),
        ]


def _tablet_server(coordinator: str) -> str:
    answer = bytes.fromhex(_talk("", coordinator, [_frame(1012, 0, m.MetadataRequest())])["got"][0])
    node = read_message(m.MetadataResponse, answer[9:]).tablet_servers[0]
    return f"{node.host}:{node.port}"


def _token(protocol: str, token: str) -> m.AuthenticateRequest:
    return m.AuthenticateRequest(protocol=protocol, token=token.encode())


def _frame(api_key: int, request_id: int, message: Any) -> bytes:
    body = write_message(message)
    return struct.pack(">ihhi", 8 + len(body), api_key, 0, request_id) + body


def _talk(name: str, address: str, sent: list[bytes]) -> dict[str, Any]:
    host, port = address.rsplit(":", 1)
    answers = []
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as connection,
        connection.makefile("rb") as stream,
    ):
        for request in sent:
            connection.sendall(request)
            head = stream.read(4)
            answers.append((head + stream.read(struct.unpack(">i", head)[0])).hex())
    return {"kind": "talk", "name": name, "sent": [each.hex() for each in sent], "got": answers}


if __name__ == "__main__":
    sys.exit(main())
