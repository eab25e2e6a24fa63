# SPDX-License-Identifier: Apache-2.0
"""A master is killed, its slave acts for it, and the master comes back through its slave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.client import (
    Admin,
    ConsumeFrom,
    NoRoute,
    Producer,
    PushConsumer,
    SendStatus,
    new_message,
)
from txrocketmq.testing.replication.pair import Pair, running_pair

COUNT = 20
WAIT_S = 60.0
DELAY_LEVEL = 3
"""Ten seconds."""
TEN_SECONDS_S = 12.0


class Readers:
    """A group of one consumer, from the first message on."""

    def __init__(self, pair: Pair, group: str) -> None:
        self._seen: list[str] = []
        self._changed = threading.Condition()
        self._consumer = PushConsumer(
            group,
            {"Orders": "*"},
            self._listen,
            consume_from=ConsumeFrom.FIRST_OFFSET,
            namesrv_addr=pair.namesrv_addr,
        )

    def _listen(self, messages: Any, context: Any) -> None:
        with self._changed:
            self._seen += [each.body.decode() for each in messages]
            self._changed.notify_all()

    def read(self, wanted: set[str]) -> None:
        """Consumes until these messages have come, and nothing else."""
        with self._consumer, self._changed:
            assert self._changed.wait_for(lambda: set(self._seen) >= wanted, WAIT_S), self._seen
        assert set(self._seen) == wanted


def until(is_so: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end_s, what
        time.sleep(0.1)


def committed(pair: Pair, group: str) -> int:
    offsets = pair.master.table("consumerOffset.json", "offsetTable").get(f"Orders@{group}", {})
    return sum(offsets.values())


@pytest.mark.timeout(300)
def test_a_slave_acts_while_its_master_is_away() -> None:
    with (
        running_pair(
            enableSlaveActingMaster="true", totalReplicas="2", flushConsumerOffsetInterval="200"
        ) as pair,
        Admin(namesrv_addr=pair.namesrv_addr) as admin,
    ):
        first = {str(number) for number in range(COUNT)}
        with Producer("shop", namesrv_addr=pair.namesrv_addr) as producer:
            for body in sorted(first):
                producer.send(new_message("Orders", body))
            pair.wait_copied()
            delayed = producer.send(new_message("Orders", "delayed", delay_level=DELAY_LEVEL))
            assert delayed.status is SendStatus.SEND_OK, "the slave has it"
            killed_s = time.monotonic()
        pair.kill()

        def acts() -> bool:
            (route,) = admin.topic_route("Orders").broker_datas
            return dict(route.broker_addrs) == {0: pair.slave.address}

        until(acts, "the slave takes the place of the master")
        Readers(pair, "stock").read(first)
        with (
            Producer("late", namesrv_addr=pair.namesrv_addr) as producer,
            pytest.raises(NoRoute, match="a slave acts for it meanwhile"),
        ):
            producer.send(new_message("Orders", "lost"))
        time.sleep(max(killed_s + TEN_SECONDS_S - time.monotonic(), 0))
        slave_end = admin.replication(pair.slave.address).ha_client_runtime_info.max_offset

        pair.restart()
        until(lambda: committed(pair, "stock") == COUNT, "the master has taken the offsets")
        assert not acts()
        Readers(pair, "stock").read({"delayed"})
        state = admin.replication(pair.master.address)
        assert state.master_commit_log_max_offset > slave_end, "it is the master that delivered"
        pair.wait_copied()
