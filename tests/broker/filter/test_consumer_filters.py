# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.filter import consumer_filters
from txrocketmq.broker.filter.consumer_filters import ConsumerFilters
from txrocketmq.broker.filter.expression import Expression
from txrocketmq.broker.filter.operators import Properties
from txrocketmq.broker.pulls.message_filter import filter_by
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.message_store import GetMessageStatus
from txrocketmq.broker.store.queues.consume_queue_ext import ConsumeQueueExt, is_ext_address
from txrocketmq.broker.work.json_file import JsonFile, JsonFileError
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.tags import SubscriptionData

GOLDEN = Path(__file__).parents[2] / "golden" / "filter"
NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 3600 * 1000


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.newest_ms = 0


def new_filters(folder: Path, clock: Clock, config: BrokerConfig | None = None) -> ConsumerFilters:
    filters = ConsumerFilters(
        config or BrokerConfig(),
        JsonFile(folder / "consumerFilter.json"),
        lambda: clock.now_ms,
        lambda: max(clock.now_ms, clock.newest_ms),
    )
    filters.load()
    return filters


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def filters(tmp_path: Path, clock: Clock) -> ConsumerFilters:
    return new_filters(tmp_path, clock)


def sql(topic: str = "T", text: str = "a > 5", version: int = 1) -> SubscriptionData:
    return SubscriptionData(topic, text, sub_version=version, expression_type="SQL92")


def test_a_heartbeat_brings_what_a_group_wants(filters: ConsumerFilters) -> None:
    filters.register("g", [sql(), SubscriptionData("U", "*"), sql("V", "")])
    data = filters.get("T", "g")
    assert data is not None
    assert (data.expression, data.client_version, data.born_time) == ("a > 5", 1, NOW_MS)
    assert not data.is_dead
    assert len(filters) == 1
    assert filters.get("U", "g") is filters.get("T", "h") is None
    assert filters.compiled(data) is filters.compile("a > 5", "SQL92")


def test_a_filter_begins_after_all_messages_that_are_there(
    filters: ConsumerFilters, clock: Clock
) -> None:
    clock.newest_ms = NOW_MS + 5000  # the clock was set back
    filters.register("g", [sql()])
    data = filters.get("T", "g")
    assert data is not None
    assert data.born_time == NOW_MS + 5000


def test_a_newer_version_counts(filters: ConsumerFilters, clock: Clock) -> None:
    filters.register("g", [sql(version=5)])
    clock.now_ms += 10
    filters.register("g", [sql(text="a > 6", version=4)])
    filters.register("g", [sql(text="a > 6", version=5)])
    assert filters.get("T", "g").expression == "a > 5"  # type: ignore[union-attr]
    filters.register("g", [sql(version=6)])
    same = filters.get("T", "g")
    filters.register("g", [sql(text="a > 6", version=7)])
    other = filters.get("T", "g")
    assert same is not None
    assert other is not None
    assert (same.client_version, same.born_time) == (6, NOW_MS)
    assert (other.client_version, other.born_time) == (7, NOW_MS + 10)
    assert other.expression == "a > 6"


def test_what_does_not_compile_is_not_taken_and_ends_what_was(filters: ConsumerFilters) -> None:
    filters.register("g", [sql(text="a >")])
    assert len(filters) == 0
    filters.register("g", [sql(version=1)])
    filters.register("g", [sql(text="a >", version=2)])
    assert filters.get("T", "g") is None
    assert len(filters) == 0


def test_those_that_left_are_dead_and_come_back(filters: ConsumerFilters, clock: Clock) -> None:
    filters.register("g", [sql(), sql("U")])
    clock.now_ms += 1000
    filters.register("g", [sql()])
    assert filters.get("U", "g").dead_time == NOW_MS + 1000  # type: ignore[union-attr]
    assert not filters.get("T", "g").is_dead  # type: ignore[union-attr]
    filters.register("g", [sql(), sql("U")])
    again = filters.get("U", "g")
    assert again is not None
    assert (again.is_dead, again.born_time) == (False, NOW_MS)


def test_a_group_without_members_is_dead(parts: Parts) -> None:
    parts.consumers.on_change.append(parts.filters.changed)
    peer = parts.consumer("g", "c1", "T")
    other = parts.consumer("g", "c2", "T")
    parts.filters.register("g", [sql()])
    parts.consumers.disconnected(peer, 0)
    assert not parts.filters.get("T", "g").is_dead  # type: ignore[union-attr]
    parts.consumers.disconnected(other, 0)
    assert parts.filters.get("T", "g").is_dead  # type: ignore[union-attr]


def test_the_long_dead_go(filters: ConsumerFilters, clock: Clock, tmp_path: Path) -> None:
    filters.register("g", [sql(), sql("U")])
    filters.register("g", [sql()])
    clock.now_ms += DAY_MS - 1
    filters.clean()
    assert len(filters) == 2
    clock.now_ms += 1
    filters.clean()
    assert len(filters) == 1
    written = json.loads((tmp_path / "consumerFilter.json").read_text())
    assert list(written["filterDataByTopic"]) == ["T"]


def test_some_of_the_long_dead_go_at_a_time(
    filters: ConsumerFilters, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_filters, "_FORGOTTEN", 2)
    filters.register("g", [sql(), *(sql(f"U{each}") for each in range(5))])
    filters.register("g", [sql()])
    clock.now_ms += DAY_MS
    for left in (4, 2, 1, 1):
        filters.clean()
        assert len(filters) == left


def test_the_file_is_read_again(filters: ConsumerFilters, clock: Clock, tmp_path: Path) -> None:
    filters.register("g", [sql(), sql("U")])
    filters.register("g", [sql()])
    clock.now_ms += 1000
    filters.clean()
    clock.now_ms += 100_000
    again = new_filters(tmp_path, clock)
    alive, dead = again.get("T", "g"), again.get("U", "g")
    assert alive is not None
    assert dead is not None
    assert (alive.dead_time, dead.dead_time) == (clock.now_ms - 30_000, NOW_MS)
    assert alive.born_time == NOW_MS
    again.register("g", [sql()])
    assert not again.get("T", "g").is_dead  # type: ignore[union-attr]


def test_another_bloom_filter_begins_anew(
    filters: ConsumerFilters, clock: Clock, tmp_path: Path
) -> None:
    filters.register("g", [sql()])
    filters.clean()
    config = BrokerConfig(expect_consumer_num_use_filter=64)
    assert len(new_filters(tmp_path, clock, config)) == 0
    assert len(new_filters(tmp_path, clock)) == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"filterDataByTopic": {"T": 5}}',
        '{"filterDataByTopic": {"T": {"groupFilterData": {"g": {"bornTime": "x"}}}}}',
        '{"filterDataByTopic": {"T": {"groupFilterData": {"g": {"bloomFilterData": 7}}}}}',
        "[]",
    ],
)
def test_a_file_that_is_something_else(content: str, tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "consumerFilter.json").write_text(content)
    with pytest.raises(JsonFileError, match="consumerFilter.json"):
        new_filters(tmp_path, clock)


def test_one_heartbeat_brings_so_much_and_the_next_the_rest(filters: ConsumerFilters) -> None:
    long = [sql(f"T{number}", f"a = '{number}{'x' * 40_000}'") for number in range(3)]
    for count in (1, 2, 3, 3):
        for text in filters.new_texts([("g", long)]):
            filters.compile(text, "SQL92")
        assert filters.register("g", long, only_kept=True) == (count == 3)
        assert len(filters) == count
    many = [(f"g{number}", [sql("T", f"b = {number}")]) for number in range(1_000)]
    assert len(filters.new_texts(many)) == 256
    too_long = [sql("T", "c" * 70_000), sql("T", "d > 5")]
    assert filters.new_texts([("g", too_long)]) == ["d > 5"]


def test_the_table_is_bounded(filters: ConsumerFilters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_filters, "MAX_FILTERS", 3)
    monkeypatch.setattr(consumer_filters, "MAX_FILTER_CHARS", 100)
    filters.register("g", [sql("T1"), sql("T2"), sql("T3"), sql("T4")])
    assert len(filters) == 3
    filters.register("g", [sql("T2"), sql("T3"), sql("T4")])
    assert filters.get("T4", "g") is None
    filters.register("g", [sql("T2"), sql("T3"), sql("T4")])
    assert filters.get("T1", "g") is None, "it was dead, and made room"
    assert filters.get("T4", "g") is not None
    assert len(filters) == 3
    filters.register("h", [sql("T9", f"a = '{'x' * 90}'")])
    assert filters.get("T9", "h") is None


# ---------------------------------------------------------------------------------- bitmaps


def test_no_bitmap_unless_it_is_wanted(parts: Parts) -> None:
    parts.put(a="6")
    record = parts.store.message_at(0)
    parts.filters.register("g", [sql()])
    assert parts.filters.bitmap("T", record) == b""
    parts.set(enable_calc_filter_bit_map=True)
    assert parts.filters.bitmap("U", record) == b""
    assert parts.filters.bitmap("T", None) == b""
    bits = parts.filters.get("T", "g").bloom  # type: ignore[union-attr]
    assert parts.filters.bitmap("T", record) == parts.filters.bloom.bitmap([bits])  # type: ignore[list-item]
    parts.filters.register("h", [sql(text="a > 6")])
    assert parts.filters.bitmap("T", record) == parts.filters.bloom.bitmap([bits])  # type: ignore[list-item]


def test_a_filter_that_is_not_at_hand_gets_its_bits(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.set(enable_calc_filter_bit_map=True)
    parts.put(a="1")
    record = parts.store.message_at(0)
    parts.filters.register("g", [sql()])
    assert parts.filters.bitmap("T", record) == bytes(14)
    monkeypatch.setattr(consumer_filters, "MAX_KEPT_CHARS", 0)
    assert parts.filters.bitmap("T", record) == bytes(14), "it is still at hand"
    parts.filters.expressions = type(parts.filters.expressions)()
    bits = parts.filters.get("T", "g").bloom  # type: ignore[union-attr]
    assert parts.filters.bitmap("T", record) == parts.filters.bloom.bitmap([bits])  # type: ignore[list-item]


def golden(version: str, folder: Path) -> Parts:
    """Parts over the store that an original broker wrote."""
    with tarfile.open(GOLDEN / f"store-{version}.tar.xz") as archive:
        archive.extractall(folder / "store", filter="data")
    settings = {
        "mapped_file_size_commit_log": 262_144,
        "mapped_file_size_consume_queue": 2000,
        "mapped_file_size_consume_queue_ext": 4096,
        "enable_consume_queue_ext": True,
    }
    config = BrokerConfig(enable_calc_filter_bit_map=True, enable_property_filter=True)
    made = Parts(folder, config, store_settings=settings)
    made.load()
    return made


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_bitmaps_of_the_original_are_made_alike_and_used(version: str, tmp_path: Path) -> None:
    parts = golden(version, tmp_path)
    few, more = parts.filters.get("Filtered", "g-few"), parts.filters.get("Filtered", "g-more")
    assert few is not None
    assert more is not None
    used = 0
    for queue_id in (0, 1):
        ext = parts.store._queues.find("Filtered", queue_id).ext  # type: ignore[union-attr]
        assert isinstance(ext, ConsumeQueueExt)
        for offset in range(17):
            stored = parts.store._queues.find("Filtered", queue_id).stored(offset)  # type: ignore[union-attr]
            assert stored is not None
            assert is_ext_address(stored[2])
            unit = ext.get(stored[2])
            record = parts.store.message_at(stored[0], stored[1])
            assert unit is not None
            assert record is not None
            if unit.bitmap:  # two groups were there already
                assert unit.bitmap == parts.filters.bitmap("Filtered", record)
                used += 1
    assert used == 24
    for data, wanted in (
        (few, {f"m{number}" for number in range(3, 18)}),
        (more, {f"m{number}" for number in range(16, 34) if number % 3}),
    ):
        wants = filter_by(parts.filters.compiled(data), data)  # type: ignore[arg-type]
        looked_at = 0

        class Counting:
            terms = 1

            def wants(self, text: str) -> bool:
                nonlocal looked_at
                looked_at += 1
                return wants.by_properties.wants(text)  # type: ignore[union-attr]  # noqa: B023

        found = set()
        for queue_id in (0, 1):
            got = parts.store.get(
                "Filtered", queue_id, 0, 32, 1 << 20, None, Counting(), wants.wants_ext
            )
            assert got.status is GetMessageStatus.FOUND
            for buffer in got.buffers:
                found |= {each.body.decode() for each in decode_messages(buffer)}
        assert found == wanted
        assert looked_at < 34, "the bitmaps have spared some of the records"
    parts.store.stop(parts.now_ms)


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_filters_of_the_original_go_on(version: str, tmp_path: Path) -> None:
    parts = golden(version, tmp_path)
    file = tmp_path / "store" / "config" / "consumerFilter.json"
    before = file.read_bytes()
    assert json.loads(before) == json.loads(parts.filters._snapshot()()), "nothing is lost"
    assert before == parts.filters._snapshot()(), "it is written as the original writes it"
    data = parts.filters.get("Filtered", "g-few")
    assert data is not None
    parts.filters.register(
        "g-few", [sql("Filtered", "a BETWEEN 3 AND 17", data.client_version + 1)]
    )
    again = parts.filters.get("Filtered", "g-few")
    assert again is not None
    assert (again.born_time, again.is_dead) == (data.born_time, False)
    parts.store.stop(parts.now_ms)


def test_a_bitmap_is_bounded_work_and_the_rest_of_the_groups_look_themselves(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.set(enable_calc_filter_bit_map=True)
    long = " OR ".join(f"a > {number}" for number in range(100, 300))
    for number in range(20):
        parts.filters.register(f"g{number}", [sql("T", f"{long} OR b = {number}")])
    parts.put(a="6")
    judged = []
    matches = Expression.matches

    def counted(self: Expression, properties: Properties) -> bool:
        judged.append(self)
        return matches(self, properties)

    monkeypatch.setattr(Expression, "matches", counted)
    bitmap = parts.filters.bitmap("T", parts.store.message_at(0))
    assert len(judged) == 3
    bits = [parts.filters.bloom.data_of(f"g{number}", "T") for number in range(3, 20)]
    assert bitmap == parts.filters.bloom.bitmap(bits)


def test_what_is_put_gets_its_bitmap_and_pulls_use_it(tmp_path: Path) -> None:
    config = BrokerConfig(enable_calc_filter_bit_map=True, enable_property_filter=True)
    parts = Parts(tmp_path, config, store_settings={"enable_consume_queue_ext": True})
    parts.now_ms += 1
    parts.filters.register("g", [sql()])
    data = parts.filters.get("T", "g")
    assert data is not None
    parts.now_ms += 1
    for number in range(10):
        parts.put(body=str(number).encode(), a=str(number))
    wanted = filter_by(parts.filters.compiled(data), data)  # type: ignore[arg-type]
    seen: list[str] = []

    class Seeing:
        terms = 1

        def wants(self, text: str) -> bool:
            seen.append(decode_properties(text)["a"])
            return True

    parts.store.get("T", 0, 0, 32, 1 << 20, None, Seeing(), wanted.wants_ext)
    assert seen == ["6", "7", "8", "9"]
    parts.store.stop(parts.now_ms)
