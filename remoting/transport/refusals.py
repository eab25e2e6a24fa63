# SPDX-License-Identifier: Apache-2.0
"""Logs refused requests: a few a minute of each kind, with the number of the others.

Some answers that are not a success are part of normal operation, such as that a group has no offset
yet, or that a topic does not exist yet. They are not logged.
"""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import RequestCode, ResponseCode, code_name
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import MOST_REMARK
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.plain_text import shortened
from txrocketmq.remoting.process.log_limit import Seldom, and_more

USUAL: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
        ResponseCode.QUERY_NOT_FOUND,
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
        ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ResponseCode.CONSUMER_NOT_ONLINE,
        ResponseCode.NO_MESSAGE,
        ResponseCode.POLLING_TIMEOUT,
    }
)
"""Answers with these codes are part of normal operation, whatever the request."""
USUAL_ANSWERS: Final = frozenset(
    {
        # A producer whose topic is to be created by its first message.
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, ResponseCode.TOPIC_NOT_EXIST),
        # The first consumer of a group, which asks for its members before its heartbeat arrives.
        (RequestCode.GET_CONSUMER_LIST_BY_GROUP, ResponseCode.SYSTEM_ERROR),
        # Administrators that look at what is not there: a group without producers, a counter that
        # has counted nothing, a message that another broker has, a topic of another broker.
        (RequestCode.GET_PRODUCER_CONNECTION_LIST, ResponseCode.SYSTEM_ERROR),
        (RequestCode.VIEW_BROKER_STATS_DATA, ResponseCode.SYSTEM_ERROR),
        (RequestCode.VIEW_MESSAGE_BY_ID, ResponseCode.SYSTEM_ERROR),
        (RequestCode.GET_TOPIC_CONFIG, ResponseCode.TOPIC_NOT_EXIST),
    }
)
"""Codes of requests and of answers that are part of normal operation together."""
TIMES_A_MINUTE: Final = 5

log = Logger()


class Refusals:
    """Logs requests that a handler or a guard refuses; it is called for each of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seldom = Seldom(TIMES_A_MINUTE)

    def __call__(self, peer: Peer, command: RemotingCommand, error: ResponseError) -> None:
        """Logs the refusal, unless it is usual, or was told, or its kind was logged often."""
        if error.is_told or error.code in USUAL or (command.code, error.code) in USUAL_ANSWERS:
            return
        more = self._seldom.more(self._clock.steady_ms(), (command.code, error.code))
        if more is None:
            return
        log.info(
            "refused {request} of {peer} ({code}): {why}{more}",
            request=code_name(command.code),
            peer=peer.remote_address,
            code=error.code,
            why=shortened(error.remark or "", MOST_REMARK),
            more=and_more(more),
        )
