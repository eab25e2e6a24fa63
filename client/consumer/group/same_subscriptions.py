# SPDX-License-Identifier: Apache-2.0
"""Finds members of a group that subscribe to something else, and says so, by name.

A broker keeps one table of subscriptions for a group, that of its last heartbeat. So members with
different topics or expressions take messages from each other, and it looks as if some were lost.
When members have come or gone, a few of the others are asked through a broker what they subscribe
to: a number of requests that does not grow with the group, at most once a minute. What cannot be
asked, for want of a right for example, is not said.

Java says nothing; its documents ask for "consistent subscriptions".
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.client import ConsumerRunningInfo
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetConsumerRunningInfoRequestHeader

SOON_MS: Final = 5_000
"""How long after a change members are asked, so that one that starts has subscribed."""
REST_MS: Final = 60_000
"""How long after that nobody is asked again."""
MOST_ASKED: Final = 3
TIMEOUT_MS: Final = 10_000
"""How long a member may take to answer, through the broker."""
MAX_TOLD: Final = 16
"""How many members are named at most, until the consumer is started again."""

log = Logger()


class SameSubscriptions:
    """Compares the subscriptions of one consumer with those of other members of its group."""

    def __init__(self, instance: ClientInstance, group: str, own: Subscriptions) -> None:
        self._instance = instance
        self._group = group
        self._own = own
        self._soon: IDelayedCall | None = None
        self._rests_until_ms = 0
        self._told: set[str] = set()

    def check_soon(self) -> None:
        """Asks other members, because some have come or gone."""
        if self._soon is None and len(self._told) < MAX_TOLD:
            rest_ms = self._rests_until_ms - self._instance.clock.steady_ms()
            self._soon = self._instance.clock.later(max(SOON_MS, rest_ms), self._begin)

    def stop(self) -> None:
        """Asks no more."""
        soon, self._soon = self._soon, None
        if soon is not None and soon.active():
            soon.cancel()

    def _begin(self) -> None:
        self._soon = None
        self._rests_until_ms = self._instance.clock.steady_ms() + REST_MS
        checking = Deferred.fromCoroutine(self._check())
        checking.addErrback(lambda failure: log.failure("comparing subscriptions failed", failure))

    async def _check(self) -> None:
        api, client_id = self._instance.api, self._instance.client_id
        address = self._address()
        if address is None:
            return
        try:
            members = await api.consumer_ids(address, self._group)
            others = sorted({*members} - {client_id} - self._told)
            for other in random.sample(others, min(MOST_ASKED, len(others))):
                header = GetConsumerRunningInfoRequestHeader(
                    consumer_group=self._group, client_id=other
                )
                call = admin.GET_CONSUMER_RUNNING_INFO
                reply = await api.ask(address, call, header, b"", TIMEOUT_MS)
                its = ConsumerRunningInfo.decode(reply.body_bytes).subscription_set
                self._compare(other, its)
        except (MQClientError, RemotingError) as error:
            log.debug("subscriptions of {group} are not compared: {error}",
                      group=self._group, error=error)  # fmt: skip

    def _address(self) -> str | None:
        """Returns a broker of one of the topics; all members are connected to each of them."""
        routes = self._instance.routes
        for topic in self._own.topics():
            for queue in routes.subscribe_queues(topic) or ():
                address = self._instance.brokers.to_subscribe(queue.broker_name, 0)
                if address is not None:
                    return address
        return None

    def _compare(self, other: str, its: Iterable[SubscriptionData]) -> None:
        here, there = _described(self._own.all()), _described(its)
        if not there or here == there:
            return
        self._told.add(other)
        log.warn(
            "members of the group {group} subscribe to different things, so that each of them"
            " misses messages: {own} to {here}, but {other} to {there}; give all members of a"
            " group the same subscriptions, or groups of their own",
            group=self._group,
            own=self._instance.client_id,
            here=here,
            other=other,
            there=there,
        )


def _described(subscriptions: Iterable[SubscriptionData]) -> str:
    """Names topics and expressions, in their order, without the topic of retries."""
    return ", ".join(
        f"{each.topic} ({each.sub_string})"
        for each in sorted(subscriptions, key=lambda each: each.topic)
        if not each.topic.startswith(RETRY_PREFIX)
    )
