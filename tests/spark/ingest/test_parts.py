# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.ingest import parts
from txrocketmq.spark.ingest.parts import Parts, Spooled

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
    spool: Path, batches: list[pa.RecordBatch], by: tuple[str, ...] = ("topic", "dt")
) -> list[Spooled]:
    made = Parts(str(spool), "a-0-9", SCHEMA, by)
    for batch in batches:
        made.add(batch)
    return made.finish()


def bodies(part: Spooled) -> list[bytes]:
    found: list[bytes] = pq.read_table(part.spooled).column("body").to_pylist()
    return found


def test_a_part_for_each_partition_with_the_rows_in_order(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        [
            batch_of([("b", 5, b"1"), ("a", 7, b"2"), ("b", 6, b"3")]),
            batch_of([("a", 3, b"4"), ("b", 86_400_000, b"5")]),
        ],
    )
    assert [part[1:] for part in found] == [
        ("topic=a/dt=1970-01-01/part-a-0-9.parquet", {"topic": "a", "dt": "1970-01-01"}, 2, 3, 7),
        ("topic=b/dt=1970-01-01/part-a-0-9.parquet", {"topic": "b", "dt": "1970-01-01"}, 2, 5, 6),
        (
            "topic=b/dt=1970-01-02/part-a-0-9.parquet", {"topic": "b", "dt": "1970-01-02"},
            1, 86_400_000, 86_400_000,
        ),
    ]  # fmt: skip
    assert [bodies(part) for part in found] == [[b"2", b"4"], [b"1", b"3"], [b"5"]]


def test_columns_that_the_path_has_are_not_in_the_file(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 1, b"")])])
    assert pq.read_schema(part.spooled).names == ["storeTimestamp", "properties", "body"]


def test_without_partitions_all_is_in_one_file(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 1, b"1"), ("b", 2, b"2")])], ())
    assert part.path == "part-a-0-9.parquet"
    assert pq.read_table(part.spooled).column("topic").to_pylist() == ["a", "b"]


def test_nothing_gives_no_file(tmp_path: Path) -> None:
    assert written(tmp_path, []) == []
    assert written(tmp_path, [batch_of([])]) == []
    assert list(tmp_path.iterdir()) == []


def test_only_columns_of_few_values_have_a_dictionary(tmp_path: Path) -> None:
    (part,) = written(tmp_path, [batch_of([("a", 1, b"x" * 50)] * 100)], ())
    group = pq.ParquetFile(part.spooled).metadata.row_group(0)
    chunks = {
        group.column(number).path_in_schema: group.column(number)
        for number in range(group.num_columns)
    }
    assert all(chunk.compression == "ZSTD" for chunk in chunks.values())
    with_dictionary = {path for path, chunk in chunks.items() if chunk.has_dictionary_page}
    assert with_dictionary == {"topic", "properties.key_value.key"}
    with_statistics = {path for path, chunk in chunks.items() if chunk.is_stats_set}
    assert with_statistics == {"storeTimestamp"}


def test_a_topic_too_long_for_a_folder(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="too long"):
        written(tmp_path, [batch_of([("t" * 300, 1, b"")])])


@settings(max_examples=40)
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
        first, second = (
            written(tmp_path_factory.mktemp("spool"), [batch_of(each) for each in rows], ("topic",))
            for _ in range(2)
        )
    assert [part.path for part in first] == [part.path for part in second]
    assert [Path(part.spooled).read_bytes() for part in first] == [
        Path(part.spooled).read_bytes() for part in second
    ]
    assert len({part.path for part in first}) == len(first)
    found: dict[str, list[bytes]] = defaultdict(list)
    for part in sorted(first, key=lambda each: (len(each.path), each.path)):
        found[part.partition["topic"]] += bodies(part)
        assert part.rows == len(bodies(part))
    expected: dict[str, list[bytes]] = defaultdict(list)
    for topic, _, body in (row for batch in rows for row in batch):
        expected[topic].append(body)
    assert found == expected
