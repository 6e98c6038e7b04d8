"""Settings of a connection, some of which are markers for what stands elsewhere."""

import pytest

from fluss.connection.config_to_settings import without_markers
from fluss.connection.connection import ClientConnection
from fluss.errors import ConfigError
from fluss.model.options.config import Config
from fluss.net.engine_thread import engine
from fluss.write.writer_pool import writer_pool

BOOTSTRAP = {"bootstrap.servers": "127.0.0.1:1"}


def test_every_setting_may_be_a_marker_and_not_only_a_secret(monkeypatch, tmp_path):
    (tmp_path / "number").write_text("5")
    monkeypatch.setenv("FLUSS_TEST_NUMBER", "5")
    markers = ("${env:FLUSS_TEST_NUMBER}", f"${{directory:{tmp_path}:number}}")
    for marker in markers:
        config = Config(
            BOOTSTRAP
            | {
                "writer.max-inflight-requests-per-bucket": marker,
                "client.lookup.max-batch-size": marker,
                "client.scanner.log.max-poll-records": marker,
            }
        )
        core = ClientConnection(engine(), config)
        assert writer_pool(core).settings.in_flight_max == 5
        assert core.options.lookup_max_batch_size == 5
        assert core.options.scanner_log_max_poll_records == 5


def test_users_are_shown_the_marker_and_not_its_value(monkeypatch):
    monkeypatch.setenv("FLUSS_TEST_SECRET", "hidden-word")
    facts = {"security.protocol": "sasl", "security.sasl.username": "u"}
    config = Config(BOOTSTRAP | facts | {"security.sasl.password": "${env:FLUSS_TEST_SECRET}"})
    core = ClientConnection(engine(), config)
    assert core.config.security_sasl_password == "${env:FLUSS_TEST_SECRET}"
    assert core.options.security_sasl_password == "hidden-word"
    assert "hidden-word" not in f"{core.config!r} {core.options!r}"


def test_a_marker_without_a_value_is_refused(monkeypatch):
    monkeypatch.delenv("FLUSS_TEST_NUMBER", raising=False)
    config = Config(BOOTSTRAP | {"writer.batch-size": "${env:FLUSS_TEST_NUMBER}"})
    with pytest.raises(ConfigError, match="FLUSS_TEST_NUMBER"):
        without_markers(config)
