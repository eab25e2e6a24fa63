# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from txrocketmq.spark.ingest import parts
from txrocketmq.spark.ingest.parts import Parts, Place, TableFile, TableLayout

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("storeTimestamp", pa.timestamp("us", "UTC")),
        pa.field("properties", pa.map_(pa.string(), pa.string())),
        pa.field("body", pa.binary()),
    ]
)


def batch_of(rows: list[tuple[str, int, bytes]]) -> pa.RecordBatch:
    columns = [
        pa.array([topic for topic, _, _ in rows], pa.string()),
        pa.array([at * 1000 for _, at, _ in rows], SCHEMA.field("storeTimestamp").type),
        pa.array([[("TAGS", topic)] for topic, _, _ in rows], SCHEMA.field("properties").type),
        pa.array([body for _, _, body in rows], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def written(
    folder: Path, batches: list[pa.RecordBatch], by: tuple[str, ...] = ("topic", "dt")
) -> list[TableFile]:
    made = Parts(Place(str(folder)), TableLayout.of_hive(SCHEMA, by))
    for batch in batches:
        made.add(batch)
    found = made.finish()
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    assert {part.path for part in found} == files
    return found


def bodies(folder: Path, part: TableFile) -> list[bytes]:
    found: list[bytes] = pq.read_table(folder / part.path).column("body").to_pylist()
    return found


def test_a_part_for_each_partition_with_the_rows_in_order(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        [
            batch_of([("b", 5, b"1"), ("a", 7, b"2"), ("b", 6, b"3")]),
            batch_of([("a", 3, b"4"), ("b", 86_400_000, b"5")]),
        ],
    )
    by_partition = {tuple(part.partition.items()): part for part in found}
    assert {key: bodies(tmp_path, part) for key, part in by_partition.items()} == {
        (("topic", "a"), ("dt", "1970-01-01")): [b"2", b"4"],
        (("topic", "b"), ("dt", "1970-01-01")): [b"1", b"3"],
        (("topic", "b"), ("dt", "1970-01-02")): [b"5"],
    }
    for part in found:
        assert part.rows == len(bodies(tmp_path, part))
        assert part.size_bytes == (tmp_path / part.path).stat().st_size


def test_statistics_bound_the_values(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 5, b""), ("a", 1700, b"")])])
    assert json.loads(part.stats) == {
        "numRecords": 2,
        "minValues": {"storeTimestamp": "1970-01-01T00:00:00.005Z"},
        "maxValues": {"storeTimestamp": "1970-01-01T00:00:01.700Z"},
        "nullCount": {},
    }


def test_a_clock_that_is_none_has_no_bounds(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", (1 << 53) - 1, b"")])])
    assert part.partition == {"topic": "a", "dt": None}
    assert json.loads(part.stats)["maxValues"] == {}


def test_columns_that_the_partition_has_are_not_in_the_file(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 1, b"")])])
    assert pq.read_schema(tmp_path / part.path).names == ["storeTimestamp", "properties", "body"]


def test_without_partitions_all_is_in_one_file(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 1, b"1"), ("b", 2, b"2")])], ())
    assert pq.read_table(tmp_path / part.path).column("topic").to_pylist() == ["a", "b"]


def test_nothing_gives_no_file(tmp_path: Path) -> None:
    assert written(tmp_path, []) == []
    assert written(tmp_path, [batch_of([])]) == []


def test_only_columns_of_few_values_have_a_dictionary(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 1, b"x" * 50)] * 100)], ())
    group = pq.ParquetFile(tmp_path / part.path).metadata.row_group(0)
    chunks = {
        group.column(number).path_in_schema: group.column(number)
        for number in range(group.num_columns)
    }
    assert all(chunk.compression == "ZSTD" for chunk in chunks.values())
    with_dictionary = {path for path, chunk in chunks.items() if chunk.has_dictionary_page}
    assert with_dictionary == {"topic", "properties.key_value.key"}
    with_statistics = {path for path, chunk in chunks.items() if chunk.is_stats_set}
    assert with_statistics == {"storeTimestamp"}


@settings(max_examples=examples(40))
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 9), st.binary()), max_size=9)
    ),
    st.integers(1, 4),
    st.integers(1, 400),
    st.integers(1, 400),
)
def test_whatever_the_bounds_every_row_is_written_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[tuple[str, int, bytes]]],
    open_files: int,
    row_group_bytes: int,
    waiting_bytes: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "OPEN_FILES", open_files)
        patch.setattr(parts, "ROW_GROUP_BYTES", row_group_bytes)
        patch.setattr(parts, "WAITING_BYTES", waiting_bytes)
        folder = tmp_path_factory.mktemp("table")
        made = written(folder, [batch_of(each) for each in rows], ("topic",))
    found: dict[str, list[bytes]] = defaultdict(list)
    for part in made:
        found[part.partition["topic"] or ""] += bodies(folder, part)
    expected: dict[str, list[bytes]] = defaultdict(list)
    for topic, _, body in (row for batch in rows for row in batch):
        expected[topic].append(body)
    assert found == expected
