# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.processors.send.send_answers import (
    BATCH_KEY,
    RECALL_HANDLE,
    Stored,
    prepared_answers,
)
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.codes import ResponseCode, SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.message.ids import Host, encode_message_id
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
TOLD = {"MSG_REGION": "Reg%d\u00e9", "TRACE_ON": "true"}
CODES = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
STORED = st.builds(
    Stored,
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**31 - 1).map(lambda n: b"%d" % n),
    st.integers(0, 2**63 - 1),
    st.none() | st.text(min_size=1, max_size=40) | st.just("7F0A%d"),
    st.integers(-(2**31), 2**31 - 1),
    st.lists(st.integers(0, 2**63 - 1), max_size=3),
    st.none(),
)
RECALLABLE = st.builds(
    Stored,
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**31 - 1).map(lambda n: b"%d" % n),
    st.integers(0, 2**63 - 1),
    st.text(min_size=1, max_size=40) | st.just("7F0A%d"),
    st.integers(-(2**31), 2**31 - 1),
    st.just(()),
    st.tuples(st.sampled_from([RECALL_HANDLE, BATCH_KEY]), st.text("abcXYZ019-_=", min_size=1)),
)


def encoded(stored: Stored, code: ResponseCode, form: int) -> bytes:
    """The same answer, made in the ordinary way."""
    ids = [
        encode_message_id(Host("127.0.0.1", 10911), offset)
        for offset in (stored.physical_offset, *stored.more_offsets)
    ]
    extra = dict([stored.extra] if stored.extra else [])
    header = SendMessageResponseHeader(
        msg_id=",".join(ids),
        queue_id=int(stored.queue_id),
        queue_offset=stored.queue_offset,
        transaction_id=stored.transaction_id,
        recall_handle=extra.get(RECALL_HANDLE),
        batch_uniq_id=extra.get(BATCH_KEY),
    )
    answer = RemotingCommand(
        code, {**TOLD, **header.encode()}, flag=RESPONSE_FLAG, opaque=stored.opaque,
        serialize_type=form,
    )  # fmt: skip
    return b"".join(map(bytes, encode_frame(answer)))


@pytest.mark.parametrize("form", [SerializeType.JSON, SerializeType.ROCKETMQ])
@given(stored=st.lists(STORED | RECALLABLE, max_size=5))
def test_prepared_answers_are_the_ordinary_ones(form: int, stored: Sequence[Stored]) -> None:
    for status, answers in prepared_answers(TOLD, HOST, form).items():
        expected = b"".join(encoded(each, CODES[status], form) for each in stored)
        assert answers.frames(stored) == expected


def test_every_outcome_of_a_stored_message_has_its_answers() -> None:
    assert set(prepared_answers({}, HOST, SerializeType.JSON)) == set(CODES)
