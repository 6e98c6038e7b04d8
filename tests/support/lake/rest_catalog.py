"""A REST catalog of Iceberg for tests: the protocol's few calls over a catalog of pyiceberg."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

CLIENT, SECRET, TOKEN = "reader", "rest-secret-1", "token-of-the-catalog"
_STATUS: dict[type[Exception], tuple[int, str]] = {
    NoSuchNamespaceError: (404, "NoSuchNamespaceException"),
    NoSuchTableError: (404, "NoSuchTableException"),
    NamespaceAlreadyExistsError: (409, "AlreadyExistsException"),
    TableAlreadyExistsError: (409, "AlreadyExistsException"),
    CommitFailedException: (409, "CommitFailedException"),
}


@contextmanager
def rest_catalog(catalog: Catalog) -> Iterator[str]:
    """Serve a catalog to those who have the token; yield the address."""
    lock = threading.Lock()  # the catalog beneath is a file of SQLite

    class Handler(_Handler):
        def answer(self, body: bytes) -> tuple[int, Any]:
            with lock:
                return _answer(catalog, self.command, self.path, self.headers, body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def answer(self, body: bytes) -> tuple[int, Any]:
        raise NotImplementedError

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, found = self.answer(body)
        except tuple(_STATUS) as error:
            status, kind = _STATUS[type(error)]
            found = {"error": {"message": str(error), "type": kind, "code": status}}
        text = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_HEAD = do_DELETE = _serve  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


def _answer(catalog: Catalog, verb: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
    parts = [unquote(each) for each in path.partition("?")[0].strip("/").split("/")][1:]
    if parts == ["oauth", "tokens"]:
        if f"client_secret={SECRET}" not in body.decode():
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3_600}
    if headers.get("Authorization") != f"Bearer {TOKEN}":
        return 401, _error("NotAuthorizedException", 401)
    match verb, parts:
        case "GET", ["config"]:
            return 200, {"defaults": {}, "overrides": {}}
        case "POST", ["namespaces"]:
            given = json.loads(body)
            catalog.create_namespace(tuple(given["namespace"]), given.get("properties") or {})
            return 200, {"namespace": given["namespace"], "properties": {}}
        case (("GET" | "HEAD"), ["namespaces", name]):
            properties = catalog.load_namespace_properties(name)
            return 200, {"namespace": [name], "properties": dict(properties)}
        case "POST", ["namespaces", name, "tables"]:
            return 200, _loaded(_created(catalog, name, body))
        case (("GET" | "HEAD"), ["namespaces", name, "tables", table]):
            return 200, _loaded(catalog.load_table((name, table)))
        case "POST", ["namespaces", name, "tables", table]:
            request = CommitTableRequest.model_validate_json(body)
            loaded = catalog.load_table((name, table))
            done = catalog.commit_table(loaded, request.requirements, request.updates)
            metadata = json.loads(done.metadata.model_dump_json())
            return 200, {"metadata-location": done.metadata_location, "metadata": metadata}
        case _:
            return 404, _error("NotFoundException", 404)


def _created(catalog: Catalog, namespace: str, body: bytes) -> Any:
    # What Java leaves out, pyiceberg's own client writes as null.
    given = {"location": None, "partition-spec": None, "write-order": None, **json.loads(body)}
    request = CreateTableRequest.model_validate(given)
    return catalog.create_table(
        (namespace, request.name),
        request.table_schema,
        location=request.location,
        partition_spec=request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
        sort_order=request.write_order or UNSORTED_SORT_ORDER,
        properties=request.properties or {},
    )


def _loaded(table: Any) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


def _error(kind: str, code: int) -> dict[str, Any]:
    return {"error": {"message": "no", "type": kind, "code": code}}
