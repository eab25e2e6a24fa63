# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.far_files import FarFiles
from tests.spark.stores import Draft, StoreWriter, drafts
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning import queue_amounts
from txrocketmq.spark.planning.picks import indexes, tagged
from txrocketmq.spark.planning.queue_amounts import Amount, LogPart, amount_of
from txrocketmq.spark.store.files import Entry, LocalFiles, OpenFile
from txrocketmq.spark.store.store import Store


def _wanted(**options: str) -> RecordFilter:
    chosen = SourceOptions.of({"storePath": "x", **options})
    return Selection.of(chosen).on("broker-a", {})


def _part(root: Path, start: int, end: int, **options: str) -> LogPart:
    store = Store.open(str(root), broker_name="broker-a")
    return LogPart(store, start, end, _wanted(**options))


@settings(max_examples=examples(40))
@given(
    puts=st.lists(drafts(light=True), min_size=1, max_size=40),
    edges=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    options=st.sampled_from(({}, {"subExpression": "A"}, {"topic": "Orders"})),
    queue_units=st.sampled_from((3, 50)),
    ext=st.booleans(),
)
def test_amounts_of_small_queues_are_exact(
    puts: list[Draft],
    edges: tuple[float, float],
    options: dict[str, str],
    queue_units: int,
    ext: bool,
) -> None:
    with TemporaryDirectory() as name:
        writer = StoreWriter(Path(name) / "s", queue_units=queue_units, ext=ext)
        writer.put_all(puts)
        start, end = sorted(int(edge * writer.end) for edge in edges)
        part = _part(writer.root, start, end, **options)
        queues = part.store.queues()
        messages = size = 0
        for queue in queues:
            first, last = indexes(queue, start, end, part.wanted)
            units = queue.units(first, last)
            messages += last - first
            size += int(units["size"][tagged(queue, units, part.wanted)].sum())
        found = amount_of(queues, part)
        assert found.messages == messages
        assert size <= found.bytes <= size + 2 * len(queues) or any(q.is_batch for q in queues)


def test_the_amount_of_a_large_queue_is_guessed_by_its_last_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=1 << 20)
    writer.put_all(Draft("Topic", body=bytes(100 if n < 20 else 300)) for n in range(40))
    monkeypatch.setattr(queue_amounts, "_SAMPLE_UNITS", 10)
    part = _part(writer.root, 0, writer.end)
    assert amount_of(part.store.queues(), part) == Amount(40, 40 * writer.stored[-1].size + 1)


def test_a_queue_costs_one_listing_and_one_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many units it has, and whatever is asked; this bounds plans over 20,000 queues."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=1 << 20, queue_units=10_000)
    writer.put_all(Draft(f"Topic{n % 50}", properties={"TAGS": "A"}) for n in range(5000))
    asked: Counter[str] = Counter()

    def counted(kind: type, name: str) -> None:
        plain = getattr(kind, name)

        def answer(*arguments: Any) -> Any:
            asked[name] += 1
            return plain(*arguments)

        monkeypatch.setattr(kind, name, answer)

    for options in ({}, {"subExpression": "A"}, {"subExpression": "B"}):
        part = _part(writer.root, 0, writer.end, **options)
        queues = part.store.queues()
        with monkeypatch.context():
            asked.clear()
            counted(LocalFiles, "list")
            counted(LocalFiles, "open")
            counted(OpenFile, "read")
            found = amount_of(queues, part)
            monkeypatch.undo()
        assert found.messages == 5000
        assert len(queues) == 50
        assert asked["list"] == 50
        assert asked["open"] == 50
        assert asked["read"] <= 50 * 3


def test_some_of_many_remote_queues_stand_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But those of several files, which may have most of the messages, are not among the others."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=1 << 20, queue_units=100)
    writer.put_all(Draft("Long") for _ in range(1500))
    writer.put_all(Draft(f"T{number % 300}") for number in range(900))
    far = FarFiles()
    part = _part(writer.root, 0, writer.end)
    store = replace(part.store, files=far).at_once()
    monkeypatch.setattr(queue_amounts, "_MOST_REMOTE", 30)
    found = amount_of(store.queues(), part._replace(store=store))
    assert 2200 <= found.messages <= 2600
    assert far.counts["read"] <= 31 * 2


def test_nothing_is_in_no_queue(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put(Draft("Topic"))
    part = _part(writer.root, 0, writer.end)
    assert amount_of([], part) == Amount(0, 0)
    (queue,) = part.store.queues()
    (writer.root / "consumequeue/Topic/0" / f"{0:020d}").unlink()
    assert amount_of([queue], part) == Amount(0, 0)
    assert list(queue.files.list(queue.path)) == list[Entry]()
