# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.counted import lines_of
from txrocketmq.broker.pop import metrics
from txrocketmq.broker.pop.metrics import ACK, CK, PopMetrics
from txrocketmq.broker.pop.records import MergeKey


def key(topic: str = "T", group: str = "g") -> MergeKey:
    return MergeKey(topic, group, 0, 7, 1, "b")


def test_records_and_messages_are_counted() -> None:
    counts = PopMetrics()
    counts.wrote(key(), CK, "PUT_OK")
    counts.wrote(key(), ACK, "PUT_OK")
    counts.wrote(key(), ACK, "PUT_OK")
    counts.has_read(key(), CK, 3)
    counts.retried(key(), "PUT_OK")
    assert counts.written == {("g", "T", "CK", "PUT_OK"): 1, ("g", "T", "ACK", "PUT_OK"): 2}
    assert counts.read == {("g", "T", "3", "CK"): 1}
    assert counts.brought_back == {("g", "T", "PUT_OK"): 1}


def test_what_is_gone_is_forgotten() -> None:
    counts = PopMetrics()
    for each in (key(), key("U"), key("U", "h")):
        counts.wrote(each, CK, "PUT_OK")
        counts.has_read(each, CK, 0)
        counts.retried(each, "PUT_OK")
    counts.forget_topic("T")
    counts.forget_group("h")
    for its in (counts.written, counts.read, counts.brought_back):
        assert [each[:2] for each in its] == [("g", "U")]


def test_names_that_anybody_may_invent_take_limited_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST", 3)
    counts = PopMetrics()
    for number in range(5):
        counts.wrote(key(group=str(number)), ACK, "PUT_OK")
    counts.wrote(key(group="0"), ACK, "PUT_OK")
    assert [each[0] for each in counts.written] == ["0", "1", "2"]
    assert counts.written["0", "T", ACK, "PUT_OK"] == 2


def test_what_goes_costs_what_it_has() -> None:
    counts = PopMetrics()
    for number in range(3_000):
        counts.wrote(key(f"t{number}", f"g{number % 100}"), ACK, "PUT_OK")
    assert lines_of(lambda: counts.forget_topic("t0")) < 40
    assert lines_of(lambda: counts.forget_group("g1")) < 40 * 30
    assert len(counts.written) == 3_000 - 1 - 30
    for number in range(3_000):
        counts.forget_topic(f"t{number}")
    assert not counts.written
    assert counts._keys == ({}, {})
