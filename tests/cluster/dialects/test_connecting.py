"""Connecting, in both dialects: opening, closing, and refused logins."""

import asyncio
import gc
import logging
import socket
import threading
import time
import traceback
import warnings

import pytest
import trio

from fluss.errors import (
    AuthenticationError,
    ClosedError,
    ConfigError,
    ConnectError,
    FlussError,
    TableNotFoundError,
)
from tests.support.servers.dialects import load_module, settle
from tests.support.servers.fix_dialects import DIALECTS

both = pytest.mark.parametrize("fluss", [load_module(each) for each in DIALECTS], ids=DIALECTS)
QUICK_S = 10


def sasl(cluster, **properties):
    return {
        "bootstrap.servers": cluster.sasl_bootstrap,
        "security.protocol": "sasl",
        "security.sasl.username": cluster.user,
        "security.sasl.password": cluster.password,
    } | properties


@pytest.mark.parametrize("way", ["create", "connect", "new"])
@both
async def test_there_are_three_names_for_connecting(fluss, way, cluster):
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    connection = await getattr(fluss.FlussConnection, way)(config)
    assert isinstance(connection, fluss.FlussConnection)
    await settle(connection.close())


@both
async def test_with_closes_the_connection(fluss, cluster):
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with await fluss.FlussConnection.connect(config) as connection:
        assert await (await settle(connection.get_admin())).list_databases()
    with pytest.raises(ClosedError):
        await connection.get_table("fluss.any")


async def test_async_with_closes_the_connection(cluster):
    fluss = load_module("fluss.aio")
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    async with await fluss.FlussConnection.create(config) as connection:
        assert await connection.get_admin().list_databases()
    assert "closed" in repr(connection)


async def test_the_documented_dialect_closes_plainly_and_awaits_its_admin(dialect):
    admin = dialect.connection.get_admin()
    closed = dialect.connection.close()
    if dialect.is_awaited:
        assert isinstance(admin, dialect.fluss.FlussAdmin)
        assert await closed is None
    else:
        assert isinstance(await admin, dialect.fluss.FlussAdmin)
        assert closed is None


async def test_a_closed_connection_refuses_every_call(dialect):
    table = await dialect.table({"id": load_module("pyarrow").int32()})
    writer = table.new_append().create_writer()
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, -2)
    await settle(dialect.connection.close())
    await settle(dialect.connection.close())
    for refused in (
        lambda: dialect.connection.get_table("a.b"),
        dialect.admin.list_databases,
        lambda: writer.append([1]),
        lambda: table.new_append().create_writer().append([1]),
        scanner.to_arrow,
    ):
        began = time.monotonic()
        with pytest.raises(ClosedError, match="closed"):
            await settle(refused())
        assert time.monotonic() - began < QUICK_S


async def test_a_closing_connection_delivers_what_was_written(dialect):
    pa = load_module("pyarrow")
    table = await dialect.table({"id": pa.int32()})
    config = dialect.connection.config()
    other = await dialect.fluss.FlussConnection.create(config)
    writer = (await other.get_table(table.get_table_path())).new_append().create_writer()
    for number in range(1_000):
        writer.append([number])
    await settle(other.close())
    assert await dialect.rows(table.new_scan()) == [{"id": each} for each in range(1_000)]


async def test_a_connection_has_its_settings_and_counters(dialect):
    config = dialect.connection.config()
    assert config.bootstrap_servers == dialect.cluster.bootstrap
    config.writer_acks = "1"
    assert dialect.connection.config().writer_acks == "all"
    before = dialect.connection.counters()
    await dialect.admin.list_databases()
    after = dialect.connection.counters()
    assert after["bytes_sent"] > before["bytes_sent"]
    assert after["bytes_received"] > before["bytes_received"]


# --- event loops ----------------------------------------------------------------------------------


@both
def test_one_connection_serves_several_loops_and_threads(fluss, cluster):
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})

    async def connect():
        connection = await fluss.FlussConnection.create(config)
        return connection, await settle(connection.get_admin())

    with asyncio.Runner() as first:
        connection, admin = first.run(connect())

    async def ask():
        return await admin.list_databases()

    with asyncio.Runner() as second:
        here = second.run(ask())
    there = []

    def ask_there():
        with asyncio.Runner() as third:
            there.append(third.run(ask()))

    thread = threading.Thread(target=ask_there)
    thread.start()
    thread.join(QUICK_S)
    assert here
    assert there == [here]

    async def close():
        await settle(connection.close())

    with asyncio.Runner() as last:
        last.run(close())


@both
def test_without_a_running_loop_what_is_awaited_is_refused(fluss, cluster):
    config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that is not awaited would warn
        with pytest.raises(RuntimeError, match="no running event loop"):
            fluss.FlussConnection.create(config)
        gc.collect()


@both
def test_trio_may_await_as_well(fluss, cluster, database):
    pa = load_module("pyarrow")

    async def main():
        config = fluss.Config({"bootstrap.servers": cluster.bootstrap})
        connection = await fluss.FlussConnection.create(config)
        admin = await settle(connection.get_admin())
        schema = fluss.Schema(pa.schema([("id", pa.int32())]), primary_keys=["id"])
        path = fluss.TablePath(database, "t")
        await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
        table = await connection.get_table(path)
        await table.new_upsert().upsert([1])
        assert await table.new_lookup().lookup([1]) == {"id": 1}
        scanner = await table.new_scan().create_log_scanner()
        scanner.subscribe(0, -2)
        assert len(await settle(scanner.poll(5_000))) == 1
        await settle(connection.close())

    trio.run(main)


async def test_a_call_that_is_not_awaited_is_carried_out_all_the_same(dialect):
    pa = load_module("pyarrow")
    schema = dialect.fluss.Schema(pa.schema([("id", pa.int32())]))
    path = dialect.path()
    ignored = dialect.admin.create_table(path, dialect.fluss.TableDescriptor(schema))
    deadline = time.monotonic() + QUICK_S
    while not await dialect.admin.table_exists(path):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    await ignored


# --- who is not let in ----------------------------------------------------------------------------


@both
async def test_a_refused_connection_fails_fast_with_its_address(fluss):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(ConnectError, match=address) as caught:
        await fluss.FlussConnection.create(
            fluss.Config({"bootstrap.servers": address, "operation-timeout": "2s"})
        )
    assert time.monotonic() - began < QUICK_S
    assert caught.value.error_code == fluss.ErrorCode.NETWORK_EXCEPTION
    assert caught.value.is_retriable
    assert caught.value.hint


@both
async def test_another_kind_of_server_is_recognised_in_bounded_time(fluss):
    async def speak_http(reader, writer):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak_http, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    began = time.monotonic()
    config = {"bootstrap.servers": f"{host}:{port}", "operation-timeout": "2s"}
    with pytest.raises(FlussError, match=f"{host}:{port}|HTTP"):
        await fluss.FlussConnection.create(fluss.Config(config))
    assert time.monotonic() - began < QUICK_S
    server.close()


@both
async def test_a_silent_server_is_given_up_in_time(fluss):
    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    began = time.monotonic()
    config = {
        "bootstrap.servers": f"{host}:{port}",
        "request-timeout": "300ms",
        "connect-timeout": "1s",
        "operation-timeout": "2s",
    }
    with pytest.raises(FlussError):
        await fluss.FlussConnection.create(fluss.Config(config))
    assert time.monotonic() - began < QUICK_S
    server.close()


@both
async def test_a_connection_wants_a_config(fluss):
    with pytest.raises(ConfigError, match="made with a Config, not with a str"):
        fluss.FlussConnection.create("user:geheim@host:9123")


@both
async def test_a_connection_may_be_made_with_the_properties_alone(fluss, cluster):
    connection = await fluss.FlussConnection.create({"bootstrap.servers": cluster.bootstrap})
    await settle(connection.close())


@both
def test_an_unknown_option_comes_with_the_nearest(fluss):
    with pytest.raises(ConfigError) as caught:
        fluss.Config({"bootstrap.server": "x:1"})
    assert caught.value.hint == "did you mean 'bootstrap.servers'?"


# --- SASL -----------------------------------------------------------------------------------------


@both
async def test_a_user_with_a_password_is_accepted_everywhere(fluss, cluster, database):
    pa = load_module("pyarrow")
    connection = await fluss.FlussConnection.create(fluss.Config(sasl(cluster)))
    admin = await settle(connection.get_admin())
    path = fluss.TablePath(database, "t")
    schema = fluss.Schema(pa.schema([("id", pa.int32())]), primary_keys=["id"])
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await connection.get_table(path)
    await table.new_upsert().upsert({"id": 7}).wait()
    assert await table.new_lookup().lookup({"id": 7}) == {"id": 7}
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    assert [each.row for each in await settle(scanner.poll(5_000))] == [{"id": 7}]
    await settle(connection.close())


@both
async def test_a_wrong_password_is_refused_with_the_user_and_without_the_password(fluss, cluster):
    config = fluss.Config(sasl(cluster, **{"security.sasl.password": "geheim-but-wrong"}))
    with pytest.raises(AuthenticationError) as caught:
        await fluss.FlussConnection.create(config)
    assert cluster.user in str(caught.value)
    assert "geheim" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("missing", ["security.sasl.username", "security.sasl.password"])
@both
async def test_sasl_without_user_or_password_is_refused_before_connecting(fluss, cluster, missing):
    properties = sasl(cluster)
    del properties[missing]
    with pytest.raises(ConfigError, match=f"{missing}' is not set") as caught:
        await fluss.FlussConnection.create(fluss.Config(properties))
    assert caught.value.hint


@both
async def test_a_plain_client_is_refused_by_a_listener_with_passwords(fluss, cluster):
    config = {"bootstrap.servers": cluster.sasl_bootstrap, "operation-timeout": "2s"}
    began = time.monotonic()
    with pytest.raises(FlussError):
        await fluss.FlussConnection.create(fluss.Config(config))
    assert time.monotonic() - began < QUICK_S


@both
async def test_a_password_may_stand_elsewhere(fluss, cluster, monkeypatch, tmp_path):
    monkeypatch.setenv("FLUSS_TEST_SECRET", cluster.password)
    (tmp_path / "password").write_text(cluster.password)
    for marker in ("${env:FLUSS_TEST_SECRET}", f"${{directory:{tmp_path}:password}}"):
        config = fluss.Config(sasl(cluster, **{"security.sasl.password": marker}))
        connection = await fluss.FlussConnection.create(config)
        admin = await settle(connection.get_admin())
        assert await admin.list_databases()
        await settle(connection.close())


@both
async def test_a_password_is_in_no_text_log_or_error(fluss, cluster, caplog):
    caplog.set_level(logging.DEBUG)
    config = fluss.Config(sasl(cluster))
    connection = await fluss.FlussConnection.create(config)
    admin = await settle(connection.get_admin())
    with pytest.raises(TableNotFoundError) as caught:
        await connection.get_table("fluss.nothing")
    texts = [
        repr(config), str(config), repr(connection), repr(admin), repr(connection.config()),
        repr(connection.counters()), "".join(traceback.format_exception(caught.value)), caplog.text,
    ]  # fmt: skip
    await settle(connection.close())
    assert any("fluss" in each.name for each in caplog.records)
    for text in texts:
        assert cluster.password not in text
