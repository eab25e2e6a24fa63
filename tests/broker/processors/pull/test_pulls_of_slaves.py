# SPDX-License-Identifier: Apache-2.0
"""What pulls are answered by a slave; see test_pull_message.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.broker.processors.pull.test_pull_message import (
    COMMIT,
    OWN,
    SUSPEND,
    Pulling,
    bodies,
    facts,
)
from tests.fakes import outcome_of
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig


@pytest.fixture
def on_slave(tmp_path: Path) -> Iterator[Pulling]:
    """A slave that may be read, whose queue has three messages; its master is not there."""
    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    parts.set(slave_read_enable=True)
    parts.topic("T")
    for _ in range(3):
        parts.put()
    assert parts.slave is not None
    made = Pulling(parts)
    made.processor.on_slave(lambda: bool(parts.slave and parts.slave.is_master_known))
    yield made
    parts.store.stop(parts.now_ms)


def has_master(pulling: Pulling) -> None:
    assert pulling.parts.slave is not None
    pulling.parts.slave.found_master("10.0.0.9:10912", "10.0.0.9:10911")


def test_a_slave_with_a_master_sends_its_readers_there(
    on_slave: Pulling, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_master(on_slave)
    group = SubscriptionGroupConfig(group_name="g", broker_id=3, which_broker_when_consume_slowly=4)
    on_slave.parts.groups.update(group)
    found = on_slave.pull()
    assert (found.code, found.header.suggest_which_broker_id) == (0, 0)
    missed = on_slave.pull(queue_offset=3, sys_flag=OWN | SUSPEND)
    assert (missed.code, missed.header.suggest_which_broker_id) == (20, 0), "it does not wait"
    moved = on_slave.pull(queue_offset=9)
    assert (moved.code, moved.header.suggest_which_broker_id) == (20, 0)
    assert moved.header.next_begin_offset == 9
    result = GetResult(GetMessageStatus.FOUND, 0, 0, 0, count=1, suggest_slave=True)
    monkeypatch.setattr(on_slave.parts.store, "get", lambda *_, **__: result)
    old = on_slave.pull()
    assert (old.code, old.header.suggest_which_broker_id) == (0, 4)


def test_a_slave_without_a_master_serves_them(on_slave: Pulling) -> None:
    group = SubscriptionGroupConfig(group_name="g", broker_id=3, which_broker_when_consume_slowly=4)
    on_slave.parts.groups.update(group)
    found = on_slave.pull()
    assert (found.code, found.header.suggest_which_broker_id) == (0, 3)
    moved = on_slave.pull(queue_offset=9)
    assert facts(moved) == (20, "OFFSET_OVERFLOW_BADLY", 9, 0, 3)
    assert moved.header.suggest_which_broker_id == 3
    on_slave.parts.set(offset_check_in_slave=True)
    assert facts(on_slave.pull(queue_offset=9)) == (21, "OFFSET_OVERFLOW_BADLY", 3, 0, 3)
    on_slave.parts.set(slave_read_enable=False)
    assert on_slave.pull().header.suggest_which_broker_id == 0


def test_a_reader_of_a_slave_waits_for_what_its_master_sends(on_slave: Pulling) -> None:
    held = on_slave.pull(queue_offset=3, sys_flag=OWN | SUSPEND)
    assert isinstance(held, PendingReply)
    on_slave.parts.put(body=b"later")
    on_slave.polling.run_woken()
    assert bodies(outcome_of(held)) == [b"later"]


def test_offsets_are_committed_on_the_way_on_a_slave_as_well(on_slave: Pulling) -> None:
    on_slave.pull(sys_flag=OWN | COMMIT, commit_offset=2)
    assert on_slave.parts.offsets.query("g", "T", 0) == 2
