# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol import offset


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(offset, ours="SearchOffsetRequestHeader.liteTopic")


def test_a_question_for_the_last_offset_means_the_committed_one() -> None:
    old = offset.GetMaxOffsetRequestHeader.decode({"topic": "t", "queueId": "0"})
    assert old.committed


def test_a_reset_without_a_queue_means_all() -> None:
    fields = {"topic": "t", "group": "g", "timestamp": "-1", "isForce": "true"}
    reset = offset.ResetOffsetRequestHeader.decode(fields)
    assert (reset.queue_id, reset.timestamp, reset.is_force) == (-1, -1, True)
