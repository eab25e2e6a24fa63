# SPDX-License-Identifier: Apache-2.0
"""What slaves together have acknowledged, and what they need."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.broker.store.replication.frames import REPORT_CODEC, HaPeerError
from txrocketmq.broker.store.replication.replicas import MOST_OF_HOST, MOST_SLAVES, Replicas

NOW_MS = 1_700_000_000_000
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


def report(offset: int) -> bytes:
    return REPORT_CODEC.pack(offset)


def of(store: MessageStore) -> Replicas:
    return Replicas(store, store.config, store.commit)


def test_only_live_connections_count(open_store: OpenStore, message: Build) -> None:
    store = open_store(broker_role="SYNC_MASTER")
    store.put([message()], NOW_MS)
    end = store.max_physical_offset
    replicas = of(store)
    first, second = replicas.begin("a", 1, 0), replicas.begin("b", 1, 0)
    assert store.commit.acknowledged == ()
    assert replicas.reported(first, report(5), 0)
    assert replicas.reported(second, report(end), 0)
    assert store.commit.acknowledged == [end, 5]
    assert replicas.needed_from == 5
    assert replicas.behind_bytes == end - 5
    assert not replicas.reported(second, report(end), 0)
    replicas.end(second)
    assert store.commit.acknowledged == [5]
    replicas.end(second)
    assert not replicas.reported(second, report(end), 0), "it has gone"
    replicas.end(first)
    assert (store.commit.acknowledged, replicas.needed_from, replicas.behind_bytes) == ([], None, 0)


def test_a_bogus_report_confirms_nothing(open_store: OpenStore, message: Build) -> None:
    store = open_store(broker_role="SYNC_MASTER")
    store.put([message()], NOW_MS)
    replicas = of(store)
    real = replicas.begin("a", 1, 0)
    replicas.reported(real, report(store.max_physical_offset), 0)
    bogus = replicas.begin("b", 1, 0)
    with pytest.raises(HaPeerError):
        replicas.reported(bogus, report(99_000_000), 0)
    replicas.end(bogus)
    store.put([message()], NOW_MS)
    outcome = store.commit.outcome(store.max_physical_offset)
    assert isinstance(outcome, Ticket)
    store.confirmed()
    assert outcome.outcome is None
    replicas.end(real)
    store.put([message()], NOW_MS)
    alone = store.commit.outcome(store.max_physical_offset)
    assert alone is PutStatus.SLAVE_NOT_AVAILABLE


def test_connections_are_limited_for_all_and_for_each_host(open_store: OpenStore) -> None:
    replicas = of(open_store())
    feeds = [replicas.begin("a", n, 0) for n in range(MOST_OF_HOST)]
    with pytest.raises(HaPeerError, match=f"a has {MOST_OF_HOST} connections already"):
        replicas.begin("a", 99, 0)
    replicas.end(feeds[0])
    replicas.begin("a", 99, 0)
    for n in range(MOST_SLAVES - MOST_OF_HOST):
        replicas.begin(f"h{n}", 1, 0)
    assert len(replicas) == len(list(replicas)) == MOST_SLAVES
    with pytest.raises(HaPeerError, match=f"there are {MOST_SLAVES} connections"):
        replicas.begin("z", 1, 0)


def test_states_are_those_of_slaves_that_have_reported(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store(ha_max_gap_not_in_sync=10)
    store.put([message()], NOW_MS)
    end = store.max_physical_offset
    replicas = of(store)
    near, far = replicas.begin("::1", 7, 0), replicas.begin("10.0.0.1", 8, 0)
    replicas.begin("10.0.0.1", 9, 0)
    replicas.reported(near, report(end - 9), 0)
    replicas.reported(far, report(end - 10), 0)
    far.sent(len(b"".join(far.pieces(100, 0))), 0)
    assert replicas.hosts() == ["::1", "10.0.0.1"]
    assert replicas.states(1_000) == [
        ("[::1]:7", end - 9, 9, True, 0, end - 9),
        ("10.0.0.1:8", end - 10, 10, False, 22, end),
    ]
