# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.conftest import Parts
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.work.config_table import ConfigTable, NamedTable, VersionedTable
from txrocketmq.broker.work.json_file import JsonFile, JsonFileError
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.serialize.json import encode_pretty


class Prices(NamedTable[dict[str, int]]):
    """Prices by name."""

    def __init__(self, path: Path) -> None:
        super().__init__(JsonFile(path), lambda: 1_000)
        self.prices: dict[str, int] = {}

    def set(self, name: str, price: int) -> None:
        self.prices[name] = price
        self._changed(name)

    def decode(self, content: Mapping[str, Any]) -> dict[str, int]:
        return {name: int(price) for name, price in (content.get("prices") or {}).items()}

    def _hold(self, held: dict[str, int]) -> Steps[None]:
        before, self.prices = self.prices, dict(held)
        return self._differences(before, held)

    def _snapshot(self) -> Callable[[], bytes]:
        content = {"dataVersion": self.data_version.to_json(), "prices": dict(self.prices)}
        return lambda: encode_pretty(content)


class Counts(Prices):
    """Prices whose version counts how often they were written."""

    counts_writes = True

    def set(self, name: str, price: int) -> None:
        self.prices[name] = price
        self._file.is_stale = True


def content_of(path: Path) -> Mapping[str, Any]:
    with JsonFile(path).content() as content:
        return content


def test_a_table_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    prices = Prices(path)
    prices.load()
    assert prices.is_missing
    prices.set("bread", 3)
    prices.saving.begin()
    again = Prices(path)
    again.load()
    assert again.prices == {"bread": 3}
    assert again.data_version == prices.data_version
    assert not again.is_missing


def test_content_that_is_no_table_is_told(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(b'{"prices":{"bread":"dear"}}')
    with pytest.raises(JsonFileError, match="does not hold what it should"):
        Prices(path).load()


def test_versions_count_changes_or_writes(tmp_path: Path) -> None:
    prices, counts = Prices(tmp_path / "prices.json"), Counts(tmp_path / "counts.json")
    for each in (prices, counts):
        each.set("bread", 3)
        each.set("bread", 4)
        each.saving.begin()
        each.saving.begin()  # nothing has changed
    assert prices.data_version.counter == 2
    assert counts.data_version.counter == 1


NAMES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))


@given(mine=NAMES, theirs=NAMES)
def test_a_table_takes_the_place_of_another(
    tmp_path_factory: pytest.TempPathFactory, mine: dict[str, int], theirs: dict[str, int]
) -> None:
    """At once for those who look, in steps for those who listen, and for good in the file."""
    path = tmp_path_factory.mktemp("config") / "prices.json"
    prices, told = Prices(path), list[str]()
    prices.prices = dict(mine)
    prices.on_change.append(told.append)
    content = {"dataVersion": {"counter": 17, "timestamp": 5, "stateVersion": 0}, "prices": theirs}
    steps = prices.replace(prices.decode(content), content)
    assert prices.prices == theirs
    assert prices.data_version.counter == 17
    assert not told
    finished(steps)
    assert sorted(told) == sorted(
        name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)
    )
    prices.saving.begin()
    assert content_of(path) == content


def test_writing_the_table_of_another_does_not_count_but_the_next_write_does(
    tmp_path: Path,
) -> None:
    """As long as the versions are the same, it is known that the tables are."""
    counts = Counts(tmp_path / "prices.json")
    content = {"dataVersion": {"counter": 17, "timestamp": 5}, "prices": {"bread": 3}}
    finished(counts.replace(counts.decode(content), content))
    counts.saving.begin()
    assert counts.data_version.counter == 17
    counts.set("bread", 4)
    counts.saving.begin()
    assert counts.data_version.counter == 18


def test_what_cannot_be_decoded_changes_nothing(tmp_path: Path) -> None:
    prices = Prices(tmp_path / "prices.json")
    prices.set("bread", 3)
    with pytest.raises(ValueError, match="dear"):
        prices.decode({"prices": {"bread": "dear"}})
    assert prices.prices == {"bread": 3}


def tables(parts: Parts) -> dict[str, ConfigTable[Any]]:
    """All tables of a broker by the names of their files."""
    found: list[ConfigTable[Any]] = [
        parts.topics, parts.groups, parts.offsets, parts.modes, parts.filters,
        parts.schedule.offsets, parts.transaction_metrics, parts.timers.metrics, parts.pop.orders,
    ]  # fmt: skip
    return {each.saving.name: each for each in found}


def test_each_file_of_a_broker_is_a_config_table(parts: Parts) -> None:
    assert sorted(tables(parts)) == sorted(file.path.name for file in parts.files)
    assert {name for name, each in tables(parts).items() if isinstance(each, VersionedTable)} == {
        "topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json",
        "transactionMetrics", "timermetrics",
    }  # fmt: skip


def full(parts: Parts) -> None:
    parts.topic("T")
    parts.groups.find("G")
    parts.groups.set_readable("G", "T", readable=False)
    parts.offsets.commit("G", "T", 0, 7)
    parts.offsets.commit("G", "T", 1, 8)
    parts.schedule.offsets.set(2, 5)
    parts.schedule.offsets.settle()
    parts.transaction_metrics.add("T", 3)
    parts.timers.metrics.add("T", 4)
    parts.pop.orders.popped(None, "T", "G", 0, parts.now_ms, 60_000, [3, 4])


def test_each_table_of_a_broker_takes_the_place_of_anothers(tmp_path: Path) -> None:
    """Then its file is that of the other, to the byte; what only it had is gone."""
    parts, other = Parts(tmp_path / "this"), Parts(tmp_path / "other")
    for each in (parts, other):
        each.load()
    full(other)
    parts.topic("Mine")
    parts.groups.find("Mine")
    parts.offsets.commit("Mine", "Mine", 0, 1)
    for name, table in tables(parts).items():
        theirs = tables(other)[name]
        table._file.is_stale = theirs._file.is_stale = True
        table.saving.begin()
        theirs.saving.begin()
        content = content_of(other.config_folder / name)
        finished(table.replace(table.decode(content), content))
        table.saving.begin()
        expected, found = ((each.config_folder / name).read_bytes() for each in (other, parts))
        assert found == expected, name
    assert parts.topics.get("Mine") is None
    assert parts.groups.get("Mine") is None
    assert parts.offsets.topics_of("G") == {"T"}
    assert parts.offsets.groups_of("Mine") == set()
    assert parts.groups.is_read_forbidden("G", "T")
    assert parts.pop.orders.is_blocked(None, "T", "G", 0, 60_000)


def test_who_looks_for_topics_finds_those_of_the_new_table(parts: Parts) -> None:
    """`get` is bound once, since it is asked for each message."""
    get = parts.topics.get
    parts.topic("T")
    topic = get("T")
    assert topic is not None
    finished(parts.topics.replace({"U": replace(topic, topic_name="U")}, {}))
    assert get("T") is None
    assert get("U") is not None
    assert get("SELF_TEST_TOPIC") is not None, "the broker's own topics remain"
    finished(parts.groups.replace(parts.groups.decode({}), {}))
    assert isinstance(parts.groups.get("TOOLS_CONSUMER"), SubscriptionGroupConfig)


@pytest.mark.parametrize("is_written", [True, False])
def test_the_next_file_has_the_offsets_that_took_the_place_of_others(
    tmp_path: Path, *, is_written: bool
) -> None:
    """Also if the last file, whose text is kept, was written just before, or is written now."""
    path = tmp_path / "consumerOffset.json"
    offsets, waiting = ConsumerOffsets(JsonFile(path), lambda: 0), list[Callable[[], None]]()

    def later(work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        if is_written:
            work()
            done(None)
        else:
            waiting.extend((work, lambda: done(None)))

    offsets.saving.in_thread = later
    offsets.commit("G", "T", 0, 1)
    offsets.commit("H", "T", 0, 2)
    offsets.saving.begin()
    if waiting:
        waiting.pop(0)()
    content = {"offsetTable": {"T@G": {"0": 9}}}
    finished(offsets.replace(offsets.decode(content), content))
    while waiting:
        waiting.pop(0)()
    offsets.saving.begin()
    while waiting:
        waiting.pop(0)()
    assert content_of(path)["offsetTable"] == {"T@G": {0: 9}}
