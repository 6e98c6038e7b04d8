"""Opening a connection: TCP, API_VERSIONS, and where the listener asks for it SASL.

Every way in which the other side may turn out not to be the expected Fluss server (no listener,
another program, a server of another role, one that requires or refuses a password) becomes an error
here that says so. What is not here: the connection itself (`net.server_connection`).
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket

import anyio

from fluss.errors import (
    AuthenticationError,
    ConnectError,
    FlussError,
    ProtocolError,
    RequestTimeoutError,
)
from fluss.model.servers import Address
from fluss.net.counters import Counters
from fluss.net.network_settings import ConnectionSettings, Login
from fluss.net.plan_retry import RetryPolicy, pause_ms
from fluss.net.server_connection import ServerConnection
from fluss.wire import messages
from fluss.wire.api import ApiKey, ServerApis
from fluss.wire.messages import read_message, write_message
from fluss.wire.sasl import Credentials, SaslClient

log = logging.getLogger("fluss.connection")

SOFTWARE_NAME = "fluss-python"
SOFTWARE_VERSION = "0.1.0"
# A server that is still loading its users asks to come back (error 51).
AUTHENTICATE_RETRY = RetryPolicy(attempts_max=10, delay_first_ms=100, delay_ms_max=5_000)
RETRIABLE_AUTHENTICATION_CODE = 51
NOT_FLUSS_HINT = "Is this the address of a Fluss server? 'bootstrap.servers' names it."


async def open_connection(
    address: Address, settings: ConnectionSettings, *, counters: Counters
) -> ServerConnection:
    """Connect to a server and shake hands.

    Raises:
        ConnectError: No server listens there, or not a Fluss server.
        AuthenticationError: The server did not accept the user.
    """
    try:
        with anyio.fail_after(settings.connect_timeout_ms / 1_000):
            return await _open(address, settings, counters=counters)
    except TimeoutError as error:
        raise ConnectError(
            f"No connection to {address} within {settings.connect_timeout_ms} ms.",
            hint="Is the address reachable from here? The limit is 'connect-timeout'.",
            address=str(address),
        ) from error


async def _open(
    address: Address, settings: ConnectionSettings, *, counters: Counters
) -> ServerConnection:
    connection = await _connect(address, settings, counters=counters)
    try:
        await _learn_versions(connection, settings)
        if settings.login is not None:
            await _authenticate(connection, settings, settings.login)
    except BaseException:
        connection.close()
        raise
    log.debug("connected to %s", address)
    return connection


async def _connect(
    address: Address, settings: ConnectionSettings, *, counters: Counters
) -> ServerConnection:
    loop = asyncio.get_running_loop()
    try:
        transport, connection = await loop.create_connection(
            lambda: ServerConnection(
                address, counters=counters, frame_bytes_max=settings.frame_bytes_max
            ),
            address.host,
            address.port,
        )
    except OSError as error:
        raise _unreachable(address, error) from error
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _unreachable(address: Address, error: OSError) -> ConnectError:
    if isinstance(error, ConnectionRefusedError):
        reason = "connection refused"
        hint = "Is a Fluss server running there? `fluss server` starts one on this machine."
    elif isinstance(error, socket.gaierror):
        reason = "the name is not known here"
        hint = (
            "Is it spelled correctly? A server in a container may advertise a name that only "
            "containers know; "
            "'address.map' says how to reach it: {'name:port': 'host:port'}."
        )
    else:
        reason, hint = error.strerror or str(error), "Is the address reachable from here?"
    return ConnectError(f"Cannot connect to {address}: {reason}.", hint=hint, address=str(address))


async def _learn_versions(connection: ServerConnection, settings: ConnectionSettings) -> None:
    request = messages.ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
    )
    try:
        body = await connection.ask(
            ApiKey.API_VERSIONS, [write_message(request)], timeout_ms=settings.request_timeout_ms
        )
        answer = read_message(messages.ApiVersionsResponse, body)
    except (ProtocolError, RequestTimeoutError) as error:
        raise ConnectError(
            f"{connection.address} does not answer as a Fluss server does: {error.message}",
            hint=error.hint if isinstance(error, ProtocolError) else NOT_FLUSS_HINT,
            address=str(connection.address),
        ) from error
    except ConnectError as error:
        raise ConnectError(
            f"{connection.address} hung up on the first request: {error.message}",
            hint=NOT_FLUSS_HINT,
            address=str(connection.address),
        ) from error
    connection.apis = ServerApis.from_response(answer)


async def _authenticate(
    connection: ServerConnection, settings: ConnectionSettings, login: Login
) -> None:
    attempt = 0
    while True:
        attempt += 1
        try:
            await _exchange(connection, settings, login)
        except FlussError as error:
            if (
                error.error_code == RETRIABLE_AUTHENTICATION_CODE
                and attempt < AUTHENTICATE_RETRY.attempts_max
            ):
                pause = pause_ms(AUTHENTICATE_RETRY, attempt=attempt, jitter=random.random())  # noqa: S311 - spreads clients, hides nothing
                await anyio.sleep(pause / 1_000)
                continue
            raise _rejected(connection, login, error) from error
        else:
            return


async def _exchange(
    connection: ServerConnection, settings: ConnectionSettings, login: Login
) -> None:
    credentials = Credentials(username=login.username, password=login.password())
    client = SaslClient(login.mechanism, credentials)
    request: messages.AuthenticateRequest | None = client.first_request()
    while request is not None:
        body = await connection.ask(
            ApiKey.AUTHENTICATE,
            [write_message(request)],
            timeout_ms=settings.request_timeout_ms,
        )
        request = client.next_request(read_message(messages.AuthenticateResponse, body))


def _rejected(connection: ServerConnection, login: Login, error: FlussError) -> FlussError:
    if isinstance(error, ConnectError | RequestTimeoutError):
        return error
    reason = error.message.partition("\n")[0]  # the embedded server appends a hint
    return AuthenticationError(
        f"{connection.address} did not accept user {login.username!r}: {reason}",
        hint="Check 'security.sasl.username' and 'security.sasl.password', and that the port is "
        "the listener that asks for SASL.",
        address=str(connection.address),
        username=login.username,
    )
