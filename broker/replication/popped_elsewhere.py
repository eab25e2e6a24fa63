# SPDX-License-Identifier: Apache-2.0
"""Gets messages that were popped at other brokers, whose slaves have sent their check points here.

A slave of the original that acts as master sends check points to other masters (enableRemoteEscape)
and expects these to read the messages there. The name server says where the broker is, which may be
the slave, or the master that has come back; one pull gets some of the messages. What is gone there
is missing. If nobody answers, or refuses, as a slave with slaveReadEnable=false does, or has not
got so far, it is tried again later by broker/pop/revive.py.

Java: EscapeBridge.getMessageFromRemoteAsync, BrokerOuterAPI.pullMessageFromSpecificBrokerAsync.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from txrocketmq.broker.pop.messages import records_of
from txrocketmq.broker.pop.records import MAX_MESSAGES, PopCheckPoint
from txrocketmq.broker.pop.waiting import Fetched
from txrocketmq.broker.replication.acting import MASTER_ID
from txrocketmq.broker.replication.escape import Send
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageQueue,
    decode_messages,
)
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE, PullMessageResponseHeader
from txrocketmq.remoting.routing.queue_requests import pull_header

_GONE = (ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_RETRY_IMMEDIATELY)
"""What a broker answers that has no message at an offset, and says where the next one is."""

Then = Callable[[Fetched | None], None]


class PoppedElsewhere:
    """Gets messages; `ask_route` asks a name server for the route of a topic."""

    def __init__(self, ask_route: Callable[[str], PendingReply]) -> None:
        self._ask_route = ask_route
        self._ask: Send | None = None

    def begin(self, ask: Send) -> None:
        """Asks other brokers by this from now on."""
        self._ask = ask

    def fetch(self, point: PopCheckPoint, offsets: Sequence[int], then: Then) -> None:
        """Gets some messages of the check point's queue; see FetchesMessages."""
        topic, name = point.topic or "", point.broker_name or ""

        def found(outcome: Reply[Any] | Exception) -> None:
            address = _address(outcome, name)
            if address is None or self._ask is None:
                then(None)
                return
            queue = MessageQueue(topic, name, point.queue_id)
            count = min(offsets[-1] - offsets[0] + 1, MAX_MESSAGES)
            header = pull_header(queue, offsets[0], count)
            reply = self._ask(address, PULL_MESSAGE, header, b"")
            reply.then(partial(_pulled, offsets, then))

        self._ask_route(topic).then(found)


def _address(outcome: Reply[Any] | Exception, broker_name: str) -> str | None:
    """Where a broker can be read: at its master, or at the first of its slaves."""
    if isinstance(outcome, Exception) or outcome.code != ResponseCode.SUCCESS:
        return None
    try:
        route = TopicRouteData.decode(outcome.body_bytes)
    except HeaderError:
        return None
    for each in route.broker_datas:
        if each.broker_name == broker_name and each.broker_addrs:
            addresses = each.broker_addrs
            address = addresses.get(MASTER_ID) or addresses[min(addresses)]
            return address if is_host_and_port(address) else None
    return None


def _pulled(offsets: Sequence[int], then: Then, outcome: Reply[Any] | Exception) -> None:
    """Hears what a broker has at the first of the offsets, and behind it."""
    then(None if isinstance(outcome, Exception) else _fetched(offsets, outcome))


def _fetched(offsets: Sequence[int], reply: Reply[Any]) -> Fetched | None:
    header = reply.header
    next_offset = header.next_begin_offset if isinstance(header, PullMessageResponseHeader) else -1
    if reply.code in _GONE:
        return Fetched({}, next_offset) if next_offset > offsets[0] else None
    if reply.code != ResponseCode.SUCCESS:
        return None
    body = reply.body_bytes
    try:
        messages = decode_messages(body, decompress_body=False)
    except MessageDecodeError:
        return None
    ends = [each.queue_offset + 1 for each in messages]
    wanted = frozenset(offsets)
    found = {
        each.queue_offset: record
        for each, record in zip(messages, records_of([body]), strict=True)
        if each.queue_offset in wanted
    }
    return Fetched(found, max(ends)) if ends and max(ends) > offsets[0] else None
