"""An S3 store on this machine: moto, and a gate in front of it that counts, checks and disturbs.

Servers and clients reach the store through the gate alone. Moto accepts every caller; the gate
knows the credentials that its token service has given away and refuses all others, as S3 does:
expired ones with `ExpiredToken`, unknown ones with `InvalidAccessKeyId`. It does not verify
signatures. It records each GET of a client, and answers some with faults that a test has ordered.
"""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote

HOST = "127.0.0.1"
SERVER_KEY = "server-key"
SERVER_SECRET = "server-secret"
BUCKET = "fluss"
ROLE = "arn:aws:iam::123456789012:role/fluss-readers"
START_TIMEOUT_S = 60.0
# It ends with its standard input, so that it does not outlive the test run.
_MOTO = """
import logging, sys
logging.getLogger("werkzeug").setLevel("ERROR")
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
_CREDENTIAL = re.compile(r"Credential=([^/,]+)/[^/]+/[^/]+/(\w+)/")
_HOP_HEADERS = {"connection", "transfer-encoding", "keep-alive", "date", "server", "content-length"}


@dataclass(slots=True, eq=False, kw_only=True)
class Get:
    """One GET of a client.

    Attributes:
        path: The object, with its bucket, wherever the request named it.
        range: The value of the header `Range`; None for the whole object.
        access_key: Whose credentials signed it.
        host: The value of the header `Host`.
        status: How it was answered.
        body_bytes: How many bytes of the body were sent.
        in_flight: How many GETs were in flight when it came, itself included.
    """

    path: str
    range: str | None
    access_key: str
    host: str
    status: int = 0
    body_bytes: int = 0
    in_flight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How a GET fails: with a status and a code, after a delay, or cut off in its body."""

    status: int | None = None
    code: str = ""
    delay_s: float = 0.0
    body_bytes_max: int | None = None


@dataclass(slots=True, eq=False)
class _Issued:
    token: str
    expires_at: float


@dataclass(slots=True, eq=False)
class Gate:
    """The gate of one store; attributes may be changed while it runs.

    Attributes:
        token_life_s: The life that credentials claim which are given away from now on.
        refused_early_s: How long before their end they are refused already.
        delay_s: How long each GET of a client takes at least.
        fault_of: Returns the fault of a GET, or None; called for each one.
        gets: The GETs of clients.
        token_requests: The actions that servers requested of the token service.
    """

    moto_port: int
    token_life_s: float = 3_600.0
    refused_early_s: float = 0.0
    delay_s: float = 0.0
    fault_of: Callable[[Get], Fault | None] = lambda _: None
    gets: list[Get] = field(default_factory=list)
    token_requests: list[str] = field(default_factory=list)
    issued: dict[str, _Issued] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    port: int = 0
    _in_flight: int = 0
    _made_for_tests: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        """The URL of the store."""
        return f"http://{HOST}:{self.port}"

    def reset(self) -> None:
        """Forget what was counted and ordered; credentials stay."""
        self.token_life_s, self.refused_early_s = 3_600.0, 0.0
        self.delay_s, self.fault_of = 0.0, lambda _: None
        self.gets.clear()

    def expire(self) -> None:
        """Let the credentials of `new_credentials` expire now; servers keep theirs for a minute."""
        for key in self._made_for_tests:
            self.issued[key].expires_at = 0.0

    def fail_next(self, *faults: Fault) -> None:
        """Answer the next GETs of clients with these faults, one each."""
        left = list(faults)

        def next_fault(_: Get) -> Fault | None:
            with self._lock:
                return left.pop(0) if left else None

        self.fault_of = next_fault

    def new_credentials(self) -> dict[str, str]:
        """Get credentials from the token service, as servers do, in the form of their tokens."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START_TIMEOUT_S)
        form = f"Action=AssumeRole&Version=2011-06-15&RoleSessionName=test&RoleArn={quote(ROLE)}"
        scope = f"{SERVER_KEY}/20300101/us-east-1/sts/aws4_request"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request("POST", "/", body=form, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, text
        key = _entry(text, "AccessKeyId")
        self._made_for_tests.add(key)
        return {
            "access_key_id": key,
            "access_key_secret": _entry(text, "SecretAccessKey"),
            "security_token": _entry(text, "SessionToken"),
        }

    @property
    def body_bytes(self) -> int:
        """How many bytes of objects clients have been sent."""
        return sum(each.body_bytes for each in self.gets)

    # --- called by the handler ------------------------------------------------------------------

    def refusal(self, access_key: str, token: str | None) -> str | None:
        """The code with which S3 refuses these credentials; None where they are valid."""
        if access_key == SERVER_KEY:
            return None
        known = self.issued.get(access_key)
        if known is None:
            return "InvalidAccessKeyId"
        if known.token != token:
            return "InvalidToken"
        return "ExpiredToken" if known.expires_at < time.time() else None

    def issue(self, body: bytes) -> bytes:
        """Note the credentials of an answer of the token service, with their end."""
        text = body.decode()
        expires_at = time.time() + self.token_life_s
        token = _entry(text, "SessionToken")
        key = _entry(text, "AccessKeyId")
        self.issued[key] = _Issued(token, expires_at - self.refused_early_s)
        self.secrets |= {_entry(text, "SecretAccessKey"), token}
        written = datetime.fromtimestamp(expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return re.sub("<Expiration>.*?<", f"<Expiration>{written}<", text).encode()

    @contextmanager
    def counted(self, get: Get) -> Iterator[None]:
        """Count a GET while it is answered."""
        with self._lock:
            self._in_flight += 1
            get.in_flight = self._in_flight
            self.gets.append(get)
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1


def _entry(text: str, name: str) -> str:
    found = re.search(f"<{name}>(.*?)</{name}>", text)
    assert found is not None, text
    return found[1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gate: Gate

    def handle_any(self) -> None:
        body = self._body()
        found = _CREDENTIAL.search(self.headers.get("Authorization", ""))
        access_key, service = found.groups() if found else ("", "")
        if service == "sts":
            self.gate.token_requests += parse_qs(body.decode()).get("Action", [])
            status, headers, answer = self._forward(body)
            self._answer(status, headers, self.gate.issue(answer) if status == 200 else answer)
            return
        token = self.headers.get("x-amz-security-token")
        if self.command != "GET" or access_key == SERVER_KEY:
            self._serve(body, self.gate.refusal(access_key, token))
            return
        get = Get(
            path=self._object(),
            range=self.headers.get("Range"),
            access_key=access_key,
            host=self.headers.get("Host", ""),
        )
        with self.gate.counted(get):
            fault = self.gate.fault_of(get) or Fault()
            time.sleep(max(self.gate.delay_s, fault.delay_s))
            if fault.status is not None:
                get.status = fault.status
                self._refuse(fault.status, fault.code)
                return
            self._serve(body, self.gate.refusal(access_key, token), get, fault.body_bytes_max)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _serve(
        self, body: bytes, refusal: str | None, get: Get | None = None, cut: int | None = None
    ) -> None:
        if refusal is not None:
            status = 400 if refusal == "ExpiredToken" else 403
            if get is not None:
                get.status = status
            self._refuse(status, refusal)
            return
        status, headers, answer = self._forward(body)
        if get is not None:
            get.status = status
        sent = self._answer(status, headers, answer, cut)
        if get is not None and status in {200, 206}:
            get.body_bytes = sent

    def _object(self) -> str:
        path = self.path.split("?")[0].lstrip("/")
        in_host = self.headers.get("Host", "").startswith(f"{BUCKET}.")
        return f"{BUCKET}/{path}" if in_host else path

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        left_out = {"expect", "te", "transfer-encoding", "content-length"}
        headers = {k: v for k, v in self.headers.items() if k.lower() not in left_out}
        headers["Content-Length"] = str(len(body))
        connection = http.client.HTTPConnection(HOST, self.gate.moto_port, timeout=60)
        try:
            connection.request(self.command, self.path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _refuse(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>as ordered</Message></Error>"
        self._answer(status, [("Content-Type", "application/xml")], text.encode())

    def _answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, cut: int | None = None
    ) -> int:
        self.send_response(status)
        length = len(body)
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = int(value)
            elif name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        sent = b"" if self.command == "HEAD" else body[:cut]
        try:
            self.wfile.write(sent)
            self.wfile.flush()
            if cut is not None and cut < len(body):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            self.close_connection = True  # the client has gone
        return len(sent)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """A client that has gone is no error of a test."""


@contextmanager
def s3_gate() -> Iterator[Gate]:
    """Start a store with a bucket, and its gate."""
    with subprocess.Popen(
        [sys.executable, "-c", _MOTO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as moto:
        assert moto.stdout is not None
        gate = Gate(int(moto.stdout.readline()))
        handler = type("Handler", (_Handler,), {"gate": gate})
        server = _Server((HOST, 0), handler)
        gate.port = server.server_port
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        try:
            _make_bucket(gate)
            yield gate
        finally:
            server.shutdown()
            server.server_close()
            moto.terminate()


def _make_bucket(gate: Gate) -> None:
    connection = http.client.HTTPConnection(HOST, gate.moto_port, timeout=START_TIMEOUT_S)
    connection.request("PUT", f"/{BUCKET}")
    assert connection.getresponse().status == 200
    connection.close()
