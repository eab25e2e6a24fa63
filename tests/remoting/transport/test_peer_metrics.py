# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from twisted.internet.task import Clock as TaskClock

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.exporter import exposition
from txrocketmq.remoting.process.log_limit import Seldom
from txrocketmq.remoting.transport.held_bytes import HeldBytes
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_metrics import PeerMetrics
from txrocketmq.remoting.transport.strangers import Shared
from txrocketmq.remoting.transport.turns import Turns


def test_who_waits_and_what_is_held_is_measured() -> None:
    later: list[Any] = []
    turns, seldom = Turns(float, later.append, later.append), Seldom(5)
    held = HeldBytes(lambda: 1 << 20, seldom, lambda: 0)
    shared = Shared(turns, held, seldom)
    peer = TcpPeer(Clock(TaskClock()), lambda *_: 0, shared=shared)
    turns.join(peer, 9)
    held.total, held.crowded, held.refused = 7, 2, 3
    text = exposition(PeerMetrics(shared, {"node_type": "broker"}).collect()).decode()
    found = {
        sample.name: (sample.value, sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    labels = {"node_type": "broker"}
    assert found["txrocketmq_peers_waiting"] == (1, labels)
    assert found["txrocketmq_peers_held_bytes"] == (7, labels)
    assert found["txrocketmq_peers_crowded"] == (2, labels)
    assert found["txrocketmq_peers_refused_total"] == (3, labels)
