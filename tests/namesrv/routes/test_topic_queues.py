# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from itertools import chain, islice
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.counted import lines_of
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.namesrv.routes.topic_queues import TopicQueues
from txrocketmq.remoting.protocol.body.route import QueueData

BROKERS = ["x", "y", "z"]
TOPICS = ["T1", "T2", "T3", "T4"]
_BROKER = st.sampled_from(BROKERS)
_TOPIC = st.sampled_from(TOPICS)
_CHANGES = st.one_of(
    st.tuples(st.just("put"), _TOPIC, _BROKER),
    st.tuples(st.just("put"), _TOPIC, _BROKER),
    st.tuples(st.just("remove"), _TOPIC, _BROKER),
    st.tuples(st.just("delete"), _TOPIC, st.one_of(st.none(), st.sets(_BROKER))),
    st.tuples(st.just("leave"), st.none(), _BROKER),
    st.tuples(st.just("perm"), st.none(), _BROKER),
    st.tuples(st.just("clean"), st.none(), st.integers(0, 6)),
)


class Both:
    """A table, and the same one without a second thought, to which it is compared."""

    def __init__(self) -> None:
        self.queues = TopicQueues()
        self.wanted: dict[str, dict[str, QueueData]] = {}
        self.cleaning = self.queues.cleaning()
        self._count = 0

    def put(self, topic: str, broker: str) -> None:
        self._count += 1
        data = QueueData(broker_name=broker, read_queue_nums=self._count, perm=6)
        self.queues.put(topic, data)
        self.wanted.setdefault(topic, {})[broker] = data

    def remove(self, topic: str, broker: str) -> None:
        self.queues.remove(topic, broker)
        self._drop(topic, broker)

    def delete(self, topic: str, brokers: set[str] | None) -> None:
        self.queues.delete(topic, brokers)
        for broker in BROKERS if brokers is None else brokers:
            self._drop(topic, broker)

    def leave(self, _: None, broker: str) -> None:
        self.queues.leave(broker)
        for topic in TOPICS:
            self._drop(topic, broker)

    def perm(self, _: None, broker: str) -> None:
        finished(self.queues.set_perm(broker, lambda perm: perm - 1))
        for queues in self.wanted.values():
            if broker in queues:
                its = queues[broker]
                queues[broker] = dataclasses.replace(its, perm=its.perm - 1)

    def clean(self, _: None, steps: int) -> None:
        if len(list(islice(self.cleaning, steps))) < steps:
            self.cleaning = self.queues.cleaning()

    def _drop(self, topic: str, broker: str) -> None:
        self.wanted.get(topic, {}).pop(broker, None)
        if not self.wanted.get(topic):
            self.wanted.pop(topic, None)

    def compare(self) -> None:
        queues = self.queues
        for topic in TOPICS:
            assert dict(queues.of(topic)) == self.wanted.get(topic, {})
        assert set(chain(*queues.topics())) == self.wanted.keys()
        for broker in BROKERS:
            has = {each for each in TOPICS if queues.has(each, broker)}
            assert has == {each for each, its in self.wanted.items() if broker in its}
            assert set(chain(*queues.topics({broker}.issubset))) == has


@given(st.lists(_CHANGES, max_size=40))
def test_it_shows_at_each_moment_what_an_obvious_table_would(
    changes: list[tuple[str, Any, Any]],
) -> None:
    both = Both()
    for what, topic, other in changes:
        getattr(both, what)(topic, other)
        both.compare()
    finished(both.cleaning)
    finished(both.queues.cleaning())
    both.compare()
    assert not both.queues.is_to_clean
    assert both.queues._queues == both.wanted
    reverse: dict[str, set[str]] = {}
    for each, its in both.wanted.items():
        for broker in its:
            reverse.setdefault(broker, set()).add(each)
    assert {broker: set(its) for broker, its in both.queues._topics_of.items()} == reverse


def test_what_goes_goes_at_once_however_much_it_has() -> None:
    queues = TopicQueues()
    for number in range(3_000):
        queues.put(f"t{number}", QueueData(broker_name="large"))
        queues.put("common", QueueData(broker_name=f"b{number}"))
    queues.put("common", QueueData(broker_name="large"))
    assert lines_of(lambda: queues.leave("large")) < 20
    assert list(chain(*queues.topics())) == ["common"]
    assert lines_of(lambda: queues.delete("common", {f"b{number}" for number in range(9)})) < 40
    assert len(queues.of("common")) == 2_991
    assert lines_of(lambda: queues.delete("common", None)) < 20
    assert not queues.of("common")
    longest = 0
    steps = queues.cleaning()
    while queues.is_to_clean:
        longest = max(longest, lines_of(lambda: next(steps, None)))
    assert longest < 150
    assert not queues._queues
    assert not queues._topics_of


def test_permissions_are_changed_until_that_is_not_wanted_any_more() -> None:
    queues = TopicQueues()
    for number in range(40):
        queues.put(f"t{number}", QueueData(broker_name="b", perm=6))
    wanted = iter([True, False])
    finished(queues.set_perm("b", lambda _: 4, lambda: next(wanted)))
    assert sum(queues.of(f"t{number}")["b"].perm == 4 for number in range(40)) == 16
