from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from fluss.errors import ConfigError
from fluss.model.options.config import HIDDEN, Config
from fluss.model.options.config_options import ONLY_IN_JAVA
from fluss.model.servers import Address
from tests.support.copies import pickled
from tools.docs.option_pages import markdown_table

# FEATURES.md 1.1: property, key, default.
DOCUMENTED = [
    ("bootstrap_servers", "bootstrap.servers", "127.0.0.1:9123"),
    ("writer_request_max_size", "writer.request-max-size", 10485760),
    ("writer_acks", "writer.acks", "all"),
    ("writer_retries", "writer.retries", 2147483647),
    ("writer_batch_size", "writer.batch-size", 2097152),
    ("writer_batch_timeout_ms", "writer.batch-timeout-ms", 100),
    ("writer_bucket_no_key_assigner", "writer.bucket.no-key-assigner", "sticky"),
    ("scanner_remote_log_prefetch_num", "scanner.remote-log.prefetch-num", 4),
    ("remote_file_download_thread_num", "remote-file.download-thread-num", 3),
    ("scanner_remote_log_read_concurrency", "scanner.remote-log.read-concurrency", 4),
    ("scanner_log_max_poll_records", "scanner.log.max-poll-records", 500),
    ("scanner_log_read_preference", "scanner.log.read-preference", "local-first"),
    ("scanner_kv_fetch_max_bytes", "scanner.kv.fetch.max-bytes", 4 * 1024 * 1024),
    ("scanner_log_fetch_max_bytes", "scanner.log.fetch.max-bytes", 16777216),
    ("scanner_log_fetch_min_bytes", "scanner.log.fetch.min-bytes", 1),
    ("scanner_log_fetch_wait_max_time_ms", "scanner.log.fetch.wait-max-time-ms", 500),
    ("scanner_log_fetch_max_bytes_for_bucket", "scanner.log.fetch.max-bytes-for-bucket", 1048576),
    ("connect_timeout_ms", "connect-timeout", 120000),
    ("request_timeout_ms", "request-timeout", 30000),
    ("security_protocol", "security.protocol", "PLAINTEXT"),
    ("security_sasl_mechanism", "security.sasl.mechanism", "PLAIN"),
    ("security_sasl_username", "security.sasl.username", ""),
    ("security_sasl_password", "security.sasl.password", ""),
    ("writer_enable_idempotence", "writer.enable-idempotence", True),
    ("writer_max_inflight_requests_per_bucket", "writer.max-inflight-requests-per-bucket", 5),
    ("writer_buffer_memory_size", "writer.buffer.memory-size", 67108864),
    ("writer_buffer_wait_timeout_ms", "writer.buffer.wait-timeout-ms", 2**64 - 1),
    ("writer_dynamic_batch_size_enabled", "writer.dynamic-batch-size.enabled", True),
    ("writer_dynamic_batch_size_min", "writer.dynamic-batch-size-min", 262144),
    ("writer_kv_backpressure_max_throttle_ms", "writer.kv-backpressure.max-throttle-ms", 3000),
]
SASL = {
    "security.protocol": "sasl",
    "security.sasl.username": "me",
    "security.sasl.password": "geheim",
}


@pytest.mark.parametrize(("name", "key", "default"), DOCUMENTED)
def test_every_documented_option_is_a_key_and_a_property_with_its_default(name, key, default):
    assert getattr(Config(), name) == default
    assert Config.OPTIONS[key].name == name
    config = Config({key: str(default).lower() if isinstance(default, bool) else default})
    assert getattr(config, name) == default
    setattr(config, name, default)
    assert getattr(config, name) == default


def test_a_config_is_made_as_documented():
    config = Config({"bootstrap.servers": "127.0.0.1:9123"})
    assert config.bootstrap_servers == "127.0.0.1:9123"
    assert Config(None).writer_acks == Config(properties={}).writer_acks == "all"
    config.writer_batch_size = 1024
    assert config.writer_batch_size == 1024


def test_values_are_text_as_in_files_or_what_they_mean():
    config = Config(
        {
            "writer.batch-size": "1mb",
            "writer.request-max-size": "10485760",
            "connect-timeout": "10 s",
            "request-timeout": timedelta(seconds=5),
            "writer.enable-idempotence": "FALSE",
            "writer.acks": 1,
            "bootstrap.servers": ["a:1", "b:2"],
            "writer.bucket.no-key-assigner": "ROUND_ROBIN",
        }
    )
    assert config.writer_batch_size == 1048576
    assert config.writer_request_max_size == 10485760
    assert config.connect_timeout_ms == 10_000
    assert config.request_timeout_ms == 5_000
    assert config.writer_enable_idempotence is False
    assert config.writer_acks == "1"
    assert config.bootstrap_servers == "a:1,b:2"
    assert config.writer_bucket_no_key_assigner == "round_robin"


@pytest.mark.parametrize(
    ("key", "value", "name", "meant"),
    [
        ("request.max.size", "5", "writer_request_max_size", 5),
        ("writer.batch.size", "5", "writer_batch_size", 5),
        ("client.writer.batch-size", "5", "writer_batch_size", 5),
        ("client.writer.batch-timeout", "5s", "writer_batch_timeout_ms", 5000),
        ("client.writer.buffer.wait-timeout", "1 min", "writer_buffer_wait_timeout_ms", 60000),
        (
            "client.scanner.log.fetch.wait-max-time",
            "1s",
            "scanner_log_fetch_wait_max_time_ms",
            1000,
        ),
        ("client.connect-timeout", "3 s", "connect_timeout_ms", 3000),
        ("client.lookup.max-batch-size", "7", "lookup_max_batch_size", 7),
        ("client.security.sasl.username", "me", "security_sasl_username", "me"),
        ("writer_acks", "0", "writer_acks", "0"),
    ],
)
def test_keys_of_other_clients_and_other_days_are_understood(key, value, name, meant):
    assert getattr(Config({key: value}), name) == meant


def test_options_may_be_given_by_name():
    assert Config(writer_acks="1", bootstrap_servers="h:1").writer_acks == "1"
    assert Config({"writer.acks": "0"}, writer_acks="1").writer_acks == "1"


def test_a_mistyped_key_brings_the_right_one():
    with pytest.raises(ConfigError, match=r"no option 'writer\.bath-size'") as caught:
        Config({"writer.bath-size": "1"})
    assert caught.value.hint == "did you mean 'writer.batch-size'?"
    assert caught.value.error_code == -2
    with pytest.raises(ConfigError) as caught:
        Config({"client.bootstrap.server": "h"})
    assert caught.value.hint == "did you mean 'bootstrap.servers'?"
    with pytest.raises(ConfigError) as caught:
        Config(operation_timeout="3s")
    assert caught.value.hint == "did you mean 'operation_timeout_ms'?"
    with pytest.raises(ConfigError):
        Config({7: "x"})  # type: ignore[dict-item]


@pytest.mark.parametrize("key", ONLY_IN_JAVA)
def test_keys_that_only_mean_something_in_java_are_refused_with_the_reason(key):
    with pytest.raises(ConfigError, match="Java client") as caught:
        Config({f"client.{key}": "x"})
    assert ONLY_IN_JAVA[key] in caught.value.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("writer.batch-size", "0"),
        ("writer.batch-size", 2**31),
        ("writer.batch-size", "2 parsec"),
        ("writer.retries", -1),
        ("writer.acks", "2"),
        ("writer.acks", True),
        ("writer.enable-idempotence", "yes"),
        ("connect-timeout", 0),
        ("security.protocol", "ssl"),
        ("security.sasl.mechanism", "GSSAPI"),
        ("bootstrap.servers", ""),
        ("bootstrap.servers", "a:b"),
        ("bootstrap.servers", None),
        ("address.map", "a:1"),
        ("address.map", 7),
        ("address.map", "a:1=b:x"),
    ],
)
def test_values_that_an_option_does_not_take_are_refused(key, value):
    with pytest.raises(ConfigError):
        Config({key: value})


def test_a_value_that_is_refused_changes_nothing():
    config = Config({"writer.batch-size": "5", "security.sasl.password": "${env:PW}"})
    with pytest.raises(ConfigError):
        config.writer_batch_size = "x"
    with pytest.raises(ConfigError):
        config.security_sasl_password = 7
    assert config.writer_batch_size == 5
    assert config.security_sasl_password == "${env:PW}"


def test_a_property_that_does_not_exist_cannot_be_set():
    with pytest.raises(AttributeError):
        Config().writer_bath_size = 1  # type: ignore[attr-defined]


def test_a_password_is_read_but_never_shown():
    config = Config(SASL)
    assert config.security_sasl_password == "geheim"
    for shown in (repr(config), str(config), str(config.to_dict()), f"{config}"):
        assert "geheim" not in shown
        assert HIDDEN in shown


def test_a_pickle_carries_no_password_and_a_copy_does():
    config = Config(SASL)
    assert pickled(config).security_sasl_password == ""
    assert pickled(config).security_sasl_username == "me"
    assert copy.copy(config).security_sasl_password == "geheim"
    assert copy.deepcopy(config).security_sasl_password == "geheim"
    with pytest.raises(ConfigError, match="pickled"):
        pickled(config).check()


def test_a_copy_is_a_copy():
    config = Config({"writer.acks": "1"})
    other = config.copy()
    other.writer_acks = "0"
    assert config.writer_acks == "1"


def test_a_marker_stays_a_marker_until_it_is_resolved():
    config = Config({**SASL, "security.sasl.password": "${env:PW}"})
    assert config.security_sasl_password == "${env:PW}"
    assert "${env:PW}" in repr(config)
    assert pickled(config).security_sasl_password == "${env:PW}"
    resolved = config.resolved({"PW": "geheim"}, no_files)
    assert resolved.security_sasl_password == "geheim"
    assert config.security_sasl_password == "${env:PW}"


def test_what_was_resolved_is_neither_shown_nor_pickled():
    config = Config({"security.sasl.password": "${env:PW}", "security.sasl.username": "${env:U}"})
    resolved = config.resolved({"PW": "geheim", "U": "wer"}, no_files)
    assert resolved.security_sasl_username == "wer"
    assert "geheim" not in repr(resolved)
    assert "wer" not in repr(resolved)
    assert pickled(resolved).security_sasl_password == "${env:PW}"
    assert pickled(resolved).security_sasl_username == "${env:U}"
    assert resolved.resolved({"PW": "neu", "U": "u"}, no_files).security_sasl_password == "neu"


def test_a_marker_may_stand_for_a_number_too():
    config = Config({"writer.retries": "${env:RETRIES}"})
    with pytest.raises(ConfigError, match=r"still is the marker \$\{env:RETRIES\}"):
        _ = config.writer_retries
    assert config.resolved({"RETRIES": "3"}, no_files).writer_retries == 3
    with pytest.raises(ConfigError, match=r"'writer\.retries'"):
        config.resolved({"RETRIES": "many"}, no_files)
    with pytest.raises(ConfigError, match="not set"):
        config.resolved({}, no_files)


def test_a_new_value_takes_the_place_of_a_marker_and_the_other_way_round():
    config = Config({"security.sasl.password": "${env:PW}"})
    config.security_sasl_password = "geheim"
    assert config.security_sasl_password == "geheim"
    assert "geheim" not in repr(config)
    config.security_sasl_password = "${env:PW}"
    assert config.security_sasl_password == "${env:PW}"


def test_a_text_that_looks_like_a_marker_can_be_escaped():
    config = Config({"security.sasl.username": "$${me}", "security.sasl.password": "$${pw}"})
    assert config.security_sasl_username == "${me}"
    assert config.security_sasl_password == "${pw}"
    assert "${pw}" not in repr(config)
    assert pickled(config).security_sasl_username == "${me}"
    assert pickled(config).security_sasl_password == ""


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"security.protocol": "sasl"}, r"security\.sasl\.username"),
        ({**SASL, "security.sasl.password": ""}, r"security\.sasl\.password"),
        ({"writer.acks": "1"}, r"writer\.acks"),
        ({"writer.retries": 0}, r"writer\.retries"),
        ({"writer.max-inflight-requests-per-bucket": 6}, r"max-inflight-requests-per-bucket"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(properties, why):
    with pytest.raises(ConfigError, match=why):
        Config(properties).check()


def test_settings_that_go_together_are_let_through():
    Config().check()
    Config(SASL).check()
    Config({"writer.acks": "0", "writer.enable-idempotence": False}).check()


def test_addresses_are_read_and_mapped():
    config = Config(
        {"bootstrap.servers": "a, b:2", "address.map": "internal:9123=127.0.0.1:19123,x:1=[::1]:2"}
    )
    assert config.bootstrap_addresses == (Address("a", 9123), Address("b", 2))
    assert config.reachable(Address("internal", 9123)) == Address("127.0.0.1", 19123)
    assert config.reachable(Address("x", 1)) == Address("::1", 2)
    assert config.reachable(Address("internal", 9124)) == Address("internal", 9124)
    mapped = Config({"address.map": {"a:1": "b:2"}})
    assert mapped.address_map == {"a:1": "b:2"}
    assert pickled(mapped).address_map == {"a:1": "b:2"}


def test_every_option_is_documented_and_has_a_default_it_takes():
    for key, option in Config.OPTIONS.items():
        assert option.key == key
        assert option.doc.endswith("."), key
        assert option.read(option.default) == option.default, key
    table = markdown_table(Config.OPTIONS.values())
    assert all(f"`{key}`" in table for key in Config.OPTIONS)


def test_no_two_options_share_a_key():
    keys = [k for o in Config.OPTIONS.values() for k in (o.key, *o.aliases, o.name)]
    assert len(keys) == len(set(keys))


def no_files(path):
    raise AssertionError(path)
