# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.kernel.two_brokers import with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.processors.pull.pull_answers import PullAnswers
from txrocketmq.broker.store.queues.consume_queue import UNIT
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.message.record import MAGIC_V1
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader


@with_each_kernel
@pytest.mark.parametrize("kind", [SerializeType.JSON, SerializeType.ROCKETMQ])
@pytest.mark.parametrize("flags", [(0, 0, 0), (1, 2, 3)])
def test_a_prepared_head_is_what_is_encoded(
    kernel: Kernel, kind: SerializeType, flags: tuple[int, int, int]
) -> None:
    head = (40).to_bytes(4, "big") + MAGIC_V1.to_bytes(4, "big", signed=True)
    record = head + bytes(20) + (1_000).to_bytes(8, "big") + b"body"
    pieces = PullAnswers(kind).pieces(*flags)
    found = kernel.pull_answer(
        memoryview(UNIT.pack(1_000, 40, 0)), memoryview(record), 1_000, 40, 0, MAGIC_V1, 32, 9_999,
        pieces, 77, (12, 3, 4_567_890_123),
    )  # fmt: skip
    header = PullMessageResponseHeader(
        suggest_which_broker_id=flags[0],
        next_begin_offset=13,
        min_offset=3,
        max_offset=4_567_890_123,
        topic_sys_flag=flags[1],
        group_sys_flag=flags[2],
    )
    answer = RemotingCommand(
        0, header.encode(), flag=RESPONSE_FLAG, opaque=77, remark="FOUND", serialize_type=kind
    )
    assert found == (1, 40, b"".join(encode_frame(answer, record)), [])


def test_few_heads_are_kept() -> None:
    answers = PullAnswers()
    made = [answers.pieces(0, 0, flag) for flag in range(300)]
    assert answers.pieces(0, 0, 299) is made[299]
    assert len(answers._made) < 257
