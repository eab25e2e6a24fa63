# SPDX-License-Identifier: Apache-2.0
"""Whole stores with light queues are in test_light_queues.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.broker.store.queues.test_light_queues import FIRST, LIGHT, SECOND, Build, listing
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.store.log.encode import IPV4_LAYOUT, Copied
from txrocketmq.broker.store.log.multi_dispatch import enter, fill
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues


class Rig:
    def __init__(self, files: Any, config: StoreConfig) -> None:
        self.config = config
        self.queues = ConsumeQueues(files, config)
        self.touched: list[ConsumeQueue] = []
        self.copied: Copied[ConsumeQueue] = []

    def enter(self, message: PutMessage, at: int = 0, room_bytes: int = 1000) -> bytes | PutStatus:
        return enter(
            message, at, IPV4_LAYOUT, room_bytes, self.queues, self.config, self.touched,
            self.copied,
        )  # fmt: skip


def rig_of(files: Any, config: Callable[..., StoreConfig], **settings: Any) -> Rig:
    return Rig(files, config(**{**LIGHT, **settings}))


def test_offsets_count_what_is_pending(
    files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    rig = rig_of(files, config)
    first = rig.enter(listing(message, FIRST, SECOND))
    second = rig.enter(listing(message, SECOND), at=2)
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
    assert first.endswith(b"\x02INNER_MULTI_QUEUE_OFFSET\x010,0\x02")
    assert second.endswith(b"\x02INNER_MULTI_QUEUE_OFFSET\x011\x02")
    assert [queue.topic for queue in rig.touched] == [FIRST, SECOND]
    fill(rig.copied, [(100, 10, 0), (110, 20, 1), (130, 30, 0)])
    assert rig.queues.open(FIRST, 0).pending == [100, 10, 0]
    assert rig.queues.open(SECOND, 0).pending == [100, 10, 0, 130, 30, 0]


def test_what_cannot_enter_touches_no_queue(
    files: Any, config: Callable[..., StoreConfig], message: Build
) -> None:
    rig = rig_of(files, config)
    illegal = PutStatus.MESSAGE_ILLEGAL
    assert rig.enter(listing(message, FIRST, "plain")) is illegal
    assert rig.enter(listing(message, FIRST, FIRST)) is illegal
    assert rig.enter(listing(message, FIRST, "%LMQ%a/b")) is illegal
    assert rig.enter(listing(message, FIRST)._replace(flag=1 << 40)) is illegal
    exceeded = rig.enter(listing(message, FIRST), room_bytes=50)
    assert exceeded is PutStatus.PROPERTIES_SIZE_EXCEEDED
    many = rig_of(files, config, max_lmq_consume_queue_num=0).enter(listing(message, FIRST))
    assert many is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    assert not rig.touched
    assert not rig.copied
    off = rig_of(files, config, enable_lmq=False, enable_multi_dispatch=False)
    assert off.enter(listing(message, FIRST)) is illegal
