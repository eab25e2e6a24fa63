# SPDX-License-Identifier: Apache-2.0
"""A client of raw frames over a blocking socket, which can be judged as a store can.

It sends without waiting, so a broker that is killed has requests that it has not answered; its
answers from before it died are still read.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from tests.crash.ledger import Ledger
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.formats.put_message import Appended, PutMessage, PutStatus
from txrocketmq.broker.store.get.get_result import GetMessageStatus, GetResult, QueryResult
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import offset, pull, query, send
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader
from txrocketmq.remoting.protocol.query import QueryMessageRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader, SendMessageResponseHeader

TIMEOUT_S: Final = 20.0
_READ_BYTES: Final = 65_536
R = TypeVar("R", bound=Header)


class WireStore:
    """The broker at an address, "host:port". Raises OSError when it is gone."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._decoder = FrameDecoder()
        self._answers: deque[RemotingCommand] = deque()
        self._sent: dict[int, list[int]] = {}
        """The numbers of the messages in each request, by opaque."""
        self._opaque = 0

    def close(self) -> None:
        self._socket.close()

    # --- sending ---

    def send(self, ledger: Ledger, count: int) -> None:
        """Sends one message, or several to a queue as a batch; `acknowledge` reads the answer."""
        drawn = ledger.draw(count, 0)
        by_queue: dict[tuple[str, int], dict[int, PutMessage]] = {}
        for number, message in drawn.items():
            by_queue.setdefault((message.topic, message.queue_id), {})[number] = message
        for (topic, queue_id), messages in by_queue.items():
            self._send(topic, queue_id, messages)

    def _send(self, topic: str, queue_id: int, messages: dict[int, PutMessage]) -> None:
        bodies = list(messages.values())
        is_batch = len(bodies) > 1
        header = SendMessageRequestHeader(
            producer_group="p",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
            properties="" if is_batch else bodies[0].properties.decode(),
            batch=is_batch,
        )
        body, call = bodies[0].body, send.SEND_MESSAGE_V2
        if is_batch:
            call = send.SEND_BATCH_MESSAGE
            body = encode_batch(
                Message(topic, each.body, properties=decode_properties(each.properties.decode()))
                for each in bodies
            )
        self._sent[self._tell(call, header, body)] = list(messages)

    def acknowledge(self, ledger: Ledger) -> int:
        """Waits for a send's answer, and tells the ledger; returns the number of its messages."""
        answer = self._answer()
        numbers = self._sent.pop(answer.opaque)
        if answer.code != ResponseCode.SUCCESS:
            return 0
        header = SendMessageResponseHeader.decode(answer.ext_fields)
        offsets = [decode_message_id(text).commit_log_offset for text in header.msg_id.split(",")]
        ledger.acknowledge(
            numbers,
            [
                Appended(PutStatus.PUT_OK, at, 0, header.queue_offset + index, 0)
                for index, at in enumerate(offsets)
            ],
        )
        return len(numbers)

    @property
    def waits(self) -> int:
        """The number of sends that have no answer yet."""
        return len(self._sent)

    # --- what a judge asks ---

    def min_offset(self, topic: str, queue_id: int) -> int:
        header = GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id)
        return self._ask(offset.GET_MIN_OFFSET, header)[0].offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        header = GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)
        return self._ask(offset.GET_MAX_OFFSET, header)[0].offset

    def get(
        self, topic: str, queue_id: int, offset: int, max_count: int, max_bytes: int
    ) -> GetResult:
        header = PullMessageRequestHeader(
            consumer_group="g",
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=max_count,
            sys_flag=int(PullSysFlag.SUBSCRIPTION),
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        self._tell(pull.PULL_MESSAGE, header)
        answer = self._answer()
        assert answer.ext_fields, f"a pull is answered by {answer.code}: {answer.remark}"
        where = PullMessageResponseHeader.decode(answer.ext_fields)
        found = answer.code == ResponseCode.SUCCESS
        return GetResult(
            GetMessageStatus.FOUND if found else GetMessageStatus.NO_MATCHED_MESSAGE,
            where.next_begin_offset,
            where.min_offset,
            where.max_offset,
            [memoryview(bytes(answer.body))] if found else [],
        )

    def query(
        self, topic: str, key: str, max_count: int, begin_ms: int, end_ms: int
    ) -> Steps[QueryResult]:
        yield  # waits, since a store takes time for a step, too
        header = QueryMessageRequestHeader(
            topic=topic,
            key=key,
            max_num=max_count,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            unique_key_query=True,
        )
        self._tell(query.QUERY_MESSAGE, header)
        answer = self._answer()
        found = answer.code == ResponseCode.SUCCESS
        return QueryResult([memoryview(bytes(answer.body))] if found else [], 0, 0)

    # --- frames ---

    def _tell(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> int:
        self._opaque += 1
        fields = header.encode_letters() if call.letters else header.encode()
        command = RemotingCommand(call.code, fields, body, opaque=self._opaque)
        self._socket.sendall(b"".join(map(bytes, encode_frame(command))))
        return self._opaque

    def _answer(self) -> RemotingCommand:
        while not self._answers:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the broker has closed the connection")
            answers: Sequence[RemotingCommand] = self._decoder.receive(data)
            self._answers.extend(answers)
        return self._answers.popleft()

    def _ask(self, call: Call[Any, R], header: Header) -> tuple[R, bytes]:
        self._tell(call, header)
        answer = self._answer()
        assert answer.code == ResponseCode.SUCCESS, f"{call.code}: {answer.code} {answer.remark}"
        return call.response.decode(answer.ext_fields), bytes(answer.body)
