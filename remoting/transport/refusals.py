# SPDX-License-Identifier: Apache-2.0
"""Logs refused requests: a few a minute of each kind, with the number of the others.

Answers that clients ask for all the time and that are no success, such as that there is no offset
or no topic yet, are no refusals.
"""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import RequestCode, ResponseCode, code_name
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.seldom import Seldom, and_more
from txrocketmq.remoting.transport.clock import Clock

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
"""Codes that are part of the day's work, whatever asks."""
_NO_ROUTE: Final = (RequestCode.GET_ROUTEINFO_BY_TOPIC, ResponseCode.TOPIC_NOT_EXIST)
"""So every producer asks whose topic is made by its first message."""
TIMES_A_MINUTE: Final = 5

log = Logger()


class Refusals:
    """Hears of each request that a handler refuses."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seldom = Seldom(TIMES_A_MINUTE)

    def __call__(self, peer: Peer, command: RemotingCommand, error: ResponseError) -> None:
        """Tells of it, unless it is usual or was told often enough."""
        if error.code in USUAL or (command.code, error.code) == _NO_ROUTE:
            return
        more = self._seldom.more(self._clock.steady_ms(), (command.code, error.code))
        if more is None:
            return
        log.info(
            "refused {request} of {peer} ({code}): {why}{more}",
            request=code_name(command.code),
            peer=peer.remote_address,
            code=error.code,
            why=error.remark,
            more=and_more(more),
        )
