# SPDX-License-Identifier: Apache-2.0
"""What happens when a queue cannot be read: who is notified, and when the next attempt is made.

It is logged once for each broker until that broker can be read again. A broker that does not have
the group, because it was restarted, gets a heartbeat at once.

Java: the onException of the callbacks in DefaultMQPushConsumerImpl.
"""

from __future__ import annotations

from typing import Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.base.errors import ClientClosed, MQBrokerError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue

BROKER_FLOW_CONTROL_MS: Final = 20
"""The pause when the broker has too much to do."""
EXCEPTION_MS: Final = 1_000
"""The pause after an error (pullTimeDelayMillsWhenException)."""
_UNKNOWN_HERE: Final = frozenset(
    {ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST}
)

log = Logger()


class Troubles:
    """The troubles of one consumer."""

    def __init__(self, instance: ClientInstance) -> None:
        self.is_over = False
        """Whether the consumer ends, so that nothing is logged or sent any more."""
        self._instance = instance
        self._troubled: set[str] = set()
        self._told_ms = -EXCEPTION_MS

    def end(self, broker_name: str) -> None:
        """Notes that a queue of this broker could be read."""
        self._troubled.discard(broker_name)

    def begin(self, queue: MessageQueue, error: Exception) -> int:
        """Handles the error of a queue that could not be read; returns how long to wait in ms."""
        code = error.code if isinstance(error, MQBrokerError) else None
        if code in _UNKNOWN_HERE:
            self._tell_brokers()
        is_news = queue.broker_name not in self._troubled
        if is_news and not isinstance(error, ClientClosed) and not self.is_over:
            self._troubled.add(queue.broker_name)
            log.warn(
                "queue {queue} cannot be read, trying again: {error}", queue=queue, error=error
            )
        return BROKER_FLOW_CONTROL_MS if code == ResponseCode.FLOW_CONTROL else EXCEPTION_MS

    def _tell_brokers(self) -> None:
        """Sends heartbeats before they are due, but at most once a second."""
        steady_ms = self._instance.clock.steady_ms()
        if steady_ms - self._told_ms >= EXCEPTION_MS and not self.is_over:
            self._told_ms = steady_ms
            telling = Deferred.fromCoroutine(self._instance.heartbeat_now())
            telling.addErrback(lambda failure: log.failure("sending heartbeats failed", failure))
