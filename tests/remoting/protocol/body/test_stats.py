# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body import stats


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(stats)


def test_an_old_broker_tells_no_pull_offset() -> None:
    text = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{"brokerOffset":5}}}'
    table = stats.ConsumeStats.decode(text).offset_table
    assert table == {MessageQueue("t", "b", 0): stats.OffsetWrapper(broker_offset=5)}
