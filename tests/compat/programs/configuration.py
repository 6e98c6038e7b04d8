"""Options by key and by attribute, and the small values of the interface."""

import importlib
import os

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))

GIVEN = {
    "bootstrap.servers": "example:9123",
    "writer.request-max-size": "1048576",
    "writer.acks": "1",
    "writer.retries": "3",
    "writer.batch-size": "65536",
    "writer.batch-timeout-ms": "7",
    "writer.bucket.no-key-assigner": "round_robin",
    "writer.enable-idempotence": "false",
    "writer.max-inflight-requests-per-bucket": "2",
    "writer.buffer.memory-size": "1048576",
    "writer.buffer.wait-timeout-ms": "1000",
    "scanner.remote-log.prefetch-num": "5",
    "remote-file.download-thread-num": "6",
    "scanner.remote-log.read-concurrency": "8",
    "scanner.log.max-poll-records": "9",
    "scanner.log.fetch.max-bytes": "1000000",
    "scanner.log.fetch.min-bytes": "11",
    "scanner.log.fetch.wait-max-time-ms": "12",
    "scanner.log.fetch.max-bytes-for-bucket": "13000",
    "connect-timeout": "14000",
    "security.protocol": "sasl",
    "security.sasl.mechanism": "PLAIN",
    "security.sasl.username": "someone",
    "security.sasl.password": "made up",
}
NAMES = [
    "bootstrap_servers",
    "writer_request_max_size",
    "writer_acks",
    "writer_retries",
    "writer_batch_size",
    "writer_batch_timeout_ms",
    "writer_bucket_no_key_assigner",
    "writer_enable_idempotence",
    "writer_max_inflight_requests_per_bucket",
    "writer_buffer_memory_size",
    "writer_buffer_wait_timeout_ms",
    "writer_dynamic_batch_size_enabled",
    "writer_dynamic_batch_size_min",
    "writer_kv_backpressure_max_throttle_ms",
    "scanner_remote_log_prefetch_num",
    "remote_file_download_thread_num",
    "scanner_remote_log_read_concurrency",
    "scanner_log_max_poll_records",
    "scanner_log_fetch_max_bytes",
    "scanner_log_fetch_min_bytes",
    "scanner_log_fetch_wait_max_time_ms",
    "scanner_log_fetch_max_bytes_for_bucket",
    "connect_timeout_ms",
    "security_protocol",
    "security_sasl_mechanism",
    "security_sasl_username",
]


def main():
    for config in (fluss.Config(), fluss.Config(GIVEN)):
        for name in NAMES:
            # The one default that differs: the documents say 120 s, pyfluss 15 s.
            if name != "connect_timeout_ms" or config.bootstrap_servers == "example:9123":
                print(name, repr(getattr(config, name)))
    config = fluss.Config()
    config.bootstrap_servers = "other:1"
    config.writer_batch_size = 4096
    config.scanner_log_max_poll_records = 17
    config.writer_acks = "all"
    print(config.bootstrap_servers, config.writer_batch_size, config.scanner_log_max_poll_records)
    print(fluss.EARLIEST_OFFSET, fluss.TablePath("a", "b").table_path_str())
    bucket = fluss.TableBucket(1, 2)
    other = fluss.TableBucket.with_partition(1, 3, 2)
    print(bucket.table_id, bucket.bucket_id, bucket.partition_id, other.partition_id)
    print(
        bucket == fluss.TableBucket(1, 2), bucket == other, {bucket: "x"}[fluss.TableBucket(1, 2)]
    )
    for kind in ("AppendOnly", "Insert", "UpdateBefore", "UpdateAfter", "Delete"):
        member = getattr(fluss.ChangeType, kind)
        print(kind, member.short_string(), int(member))
    snapshot = fluss.LakeSnapshot(5)
    print(snapshot.snapshot_id, snapshot.get_bucket_offset(bucket), snapshot.get_table_buckets())


main()
