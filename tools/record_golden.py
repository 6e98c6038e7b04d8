"""Writes the files in tests/java/golden: the golden cases, encoded by Fluss's own Java classes.

    python -m tools.record_golden           writes the files
    python -m tools.record_golden --check   lists the files that Java would write differently

Needs Java and the jar of the Fluss server (see tests/support/differential/oracle.py). The cases are
in tests/support/generators/golden_cases.py. If a file changes and no case did, Java
behaves differently now: read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.differential.oracle import Oracle, OracleUnavailableError, start
from tests.support.differential.oracle_types import Lake, RowFormat
from tests.support.generators import golden_cases as cases
from tests.support.generators.golden_documents import DOCUMENTS

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "java" / "golden"

Entries = list[dict[str, Any]]


def recorded(oracle: Oracle) -> Iterator[tuple[str, Entries]]:
    """Yield every golden file as (name, entries)."""
    formats: tuple[RowFormat, ...] = ("COMPACTED", "INDEXED", "ALIGNED")
    for row_format in formats:
        yield f"{row_format.lower()}_rows", _rows(oracle, row_format)
    yield "compacted_keys", _keys(oracle, None, (*cases.KEY_CASES, *cases.WIDE_KEY_CASES))
    yield "paimon_keys", _keys(oracle, "paimon", (*cases.KEY_CASES, *cases.WIDE_KEY_CASES))
    yield "iceberg_keys", _keys(oracle, "iceberg", cases.ICEBERG_KEY_CASES)
    yield "buckets", _buckets(oracle)
    yield "partition_texts", _partition_texts(oracle)
    yield "type_json", _type_json(oracle)
    yield "documents", _documents(oracle)
    yield "log_batches", _log_batches(oracle)
    yield "kv_batches", _kv_batches(oracle)
    yield "values", _values(oracle)
    yield "segment_indexes", _indexes(oracle)
    yield "enumerations", _enumerations(oracle)


def document(oracle: Oracle, entries: Entries) -> str:
    """Return the text of a golden file."""
    head = {"fluss": oracle.fluss_version, "command": "python -m tools.record_golden"}
    lines = ",\n".join(json.dumps(each, ensure_ascii=True) for each in entries)
    return f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n'


def _rows(oracle: Oracle, row_format: RowFormat) -> Entries:
    return [
        _asked(case) | {"bytes": _hex(oracle.write_rows(row_format, case.types, case.rows))}
        for case in cases.ROW_CASES
    ]


def _keys(oracle: Oracle, lake: Lake, asked: Sequence[cases.RowCase]) -> Entries:
    return [
        _asked(case)
        | {
            "bytes": _hex(
                oracle.bucket_keys(case.types, range(len(case.types)), case.rows, lake=lake)
            )
        }
        for case in asked
    ]


def _buckets(oracle: Oracle) -> Entries:
    lakes: tuple[tuple[Lake, Sequence[bytes]], ...] = (
        (None, cases.BUCKET_KEYS),
        ("lance", cases.BUCKET_KEYS),
        ("iceberg", cases.BUCKET_KEYS),
        ("paimon", cases.PAIMON_BUCKET_KEYS),
    )
    return [
        {
            "name": f"{lake} {count}",
            "keys": _hex(keys),
            "buckets": oracle.buckets(keys, count, lake=lake),
        }
        for lake, keys in lakes
        for count in cases.BUCKET_COUNTS
    ]


def _partition_texts(oracle: Oracle) -> Entries:
    return [
        _asked(case)
        | {"texts": oracle.partition_texts(case.types[0], [row[0] for row in case.rows])}
        for case in cases.PARTITION_CASES
    ]


def _type_json(oracle: Oracle) -> Entries:
    written = oracle.write_type_json(cases.TYPE_CASES)
    return [
        {"name": str(data_type), "json": text.decode()}
        for data_type, text in zip(cases.TYPE_CASES, written, strict=True)
    ]


def _documents(oracle: Oracle) -> Entries:
    return [
        {
            "name": name,
            "given": document,
            "java": json.loads(oracle.json_again(kind, [json.dumps(document).encode()])[0]),
        }
        for name, kind, document in DOCUMENTS
    ]


def _log_batches(oracle: Oracle) -> Entries:
    return [
        {
            "name": case.name,
            "types": [str(data_type) for data_type in case.types],
            "header": repr(case.header),
            "records": [repr(record) for record in case.records],
            "bytes": oracle.write_log(
                case.log_format, case.types, case.records, case.header, compression=case.compression
            ).hex(),
        }
        for case in cases.LOG_CASES
    ]


def _kv_batches(oracle: Oracle) -> Entries:
    return [
        {
            "name": case.name,
            "types": [str(data_type) for data_type in case.types],
            "records": [repr(record) for record in case.records],
            "bytes": oracle.write_kv(
                case.kv_format,
                case.types,
                case.records,
                schema_id=case.schema_id,
                writer_id=case.writer_id,
                sequence=case.sequence,
            ).hex(),
        }
        for case in cases.KV_CASES
    ]


def _values(oracle: Oracle) -> Entries:
    entries = []
    for case in cases.VALUE_CASES:
        values, batch = oracle.write_values(
            "COMPACTED", case.types, case.rows, schema_id=cases.VALUE_SCHEMA_ID
        )
        entries.append(_asked(case) | {"bytes": _hex(values), "batch": batch.hex()})
    return entries


def _indexes(oracle: Oracle) -> Entries:
    base = cases.INDEX_BASE_OFFSET
    offsets, times = cases.OFFSET_INDEX_ENTRIES, cases.TIME_INDEX_ENTRIES
    return [
        {
            "name": "offsets",
            "entries": repr(offsets),
            "bytes": oracle.write_offset_index(base, offsets).hex(),
        },
        {
            "name": "times",
            "entries": repr(times),
            "bytes": oracle.write_time_index(base, times).hex(),
        },
    ]


def _enumerations(oracle: Oracle) -> Entries:
    found = oracle.enumerations()
    return [
        {"name": "errors", "entries": found.errors},
        {"name": "api keys", "entries": found.api_keys},
        {"name": "change types", "entries": found.change_types},
    ]


def _asked(case: cases.RowCase) -> dict[str, Any]:
    return {
        "name": case.name,
        "types": [str(each) for each in case.types],
        "rows": [repr(row) for row in case.rows],
    }


def _hex(values: Sequence[bytes]) -> list[str]:
    return [each.hex() for each in values]


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with --check only compare them."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_golden", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    try:
        with start() as oracle:
            different = [
                path.name
                for name, entries in recorded(oracle)
                if _settle(path := GOLDEN / f"{name}.json", document(oracle, entries), check=check)
            ]
    except OracleUnavailableError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{'differ' if check else 'written'}: {', '.join(different) or 'none'}")
    return 1 if check and different else 0


def _settle(path: Path, text: str, *, check: bool) -> bool:
    """Write the text if the file differs, unless with --check; return whether it differed."""
    if path.exists() and path.read_text() == text:
        return False
    if not check:
        path.write_text(text)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
