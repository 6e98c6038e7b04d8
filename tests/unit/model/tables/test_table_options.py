from __future__ import annotations

import pytest

from fluss.errors import ConfigError
from fluss.model.tables.table_options import (
    PREFIX,
    ArrowCompression,
    AutoPartitionUnit,
    ChangelogImage,
    DataLakeFormat,
    DeleteBehavior,
    KvFormat,
    LogFormat,
    MergeEngine,
    TableOptions,
)
from tests.support.copies import pickled


def test_a_table_without_properties_has_the_defaults_of_fluss():
    options = TableOptions()
    assert options.log_format is LogFormat.ARROW
    assert options.kv_format is KvFormat.COMPACTED
    assert options.arrow_compression is ArrowCompression.ZSTD
    assert options.zstd_level == 3
    assert options.log_ttl_ms == 7 * 24 * 3_600_000
    assert options.tiered_local_segments == 2
    assert options.kv_format_version is None
    assert options.merge_engine is None
    assert options.effective_delete_behavior is DeleteBehavior.ALLOW
    assert options.changelog_image is ChangelogImage.FULL
    assert options.auto_increment_cache_size == 100_000
    assert not options.auto_partition_enabled
    assert options.auto_partition_unit is AutoPartitionUnit.DAY
    assert options.auto_partition_precreate == 2
    assert options.auto_partition_retention == 7
    assert options.datalake_format is None
    assert options.datalake_freshness_ms == 180_000


def test_values_are_read_in_any_case():
    options = TableOptions(
        {
            "table.log.format": "arrow",
            "table.kv.format": "indexed",
            "table.log.arrow.compression.type": "lz4_frame",
            "table.merge-engine": "FIRST_ROW",
            "table.delete.behavior": "Disable",
            "table.changelog.image": "WAL",
            "table.datalake.format": "PAIMON",
            "table.datalake.enabled": "TRUE",
            "table.log.ttl": "12 h",
            "table.auto-partition.time-unit": "quarter",
            "table.kv.format-version": "2",
        }
    )
    assert options.log_format is LogFormat.ARROW
    assert options.kv_format is KvFormat.INDEXED
    assert options.arrow_compression is ArrowCompression.LZ4_FRAME
    assert options.merge_engine is MergeEngine.FIRST_ROW
    assert options.delete_behavior is DeleteBehavior.DISABLE
    assert options.changelog_image is ChangelogImage.WAL
    assert options.datalake_format is DataLakeFormat.PAIMON
    assert options.datalake_enabled
    assert options.log_ttl_ms == 12 * 3_600_000
    assert options.auto_partition_unit is AutoPartitionUnit.QUARTER
    assert options.kv_format_version == 2


def test_a_merge_engine_ignores_deletes_by_default():
    assert (
        TableOptions({"table.merge-engine": "versioned"}).effective_delete_behavior
        is DeleteBehavior.IGNORE
    )
    allowed = {"table.merge-engine": "aggregation", "table.delete.behavior": "allow"}
    assert TableOptions(allowed).effective_delete_behavior is DeleteBehavior.ALLOW


def test_a_value_of_a_newer_server_is_an_error_only_when_it_is_asked_for():
    options = TableOptions({"table.merge-engine": "crdt", "table.log.format": "INDEXED"})
    assert options.log_format is LogFormat.INDEXED
    with pytest.raises(ConfigError, match="'crdt' is not one of first_row, versioned, aggregation"):
        _ = options.merge_engine


def test_an_option_of_a_table_is_not_set_here():
    with pytest.raises(AttributeError, match=r"table\.log\.ttl"):
        TableOptions().log_ttl_ms = 5


def test_statistics_are_collected_for_named_columns_in_the_order_of_the_table():
    names = ("a", "b", "c")
    key = "table.statistics.columns"
    assert TableOptions().statistics_columns(names) == ()
    assert TableOptions({key: "*"}).statistics_columns(names) == names
    assert TableOptions({key: " c , a, c"}).statistics_columns(names) == ("a", "c")


def test_every_option_begins_like_one_of_a_table_and_is_documented():
    assert len(TableOptions.OPTIONS) == 34
    for key, option in TableOptions.OPTIONS.items():
        assert key.startswith(PREFIX)
        assert option.doc.endswith(".")
        assert option.since in {"", "1.0"}


def test_options_can_be_pickled():
    made = pickled(TableOptions({"table.log.ttl": "1 d"}))
    assert made.log_ttl_ms == 86_400_000
