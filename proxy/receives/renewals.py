# SPDX-License-Identifier: Apache-2.0
"""Messages that are kept hidden while their consumers work on them.

A push consumer leaves it to the proxy for how long a message is hidden: it is hidden for a minute,
and again before that ends, each time for longer. That ends when the message is settled, when the
client is gone, after some failures, or after a time: 3 hours, but for messages in order, which make
all others of their queue wait, the time that the group has to consume one.

A client keeps the handle that it was given first. The newest one takes its place in all that it
asks for, until an acknowledgement has succeeded; and after it has changed the time itself, until
the message is visible again.

Memory is bounded for each client and for all: what is not kept here is visible again after its
first minute. Work is bounded as well: so many messages in a turn.

Java: DefaultReceiptHandleManager, ReceiptHandleGroup, RenewStrategyPolicy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.groups import Groups
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.proxy.receives.settlements import Settlements
from txrocketmq.proxy.sessions.clients import Client, Clients
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock, Repeating
from txrocketmq.remoting.protocol.body.topic import DEFAULT_RETRY_DELAYS_MS

MAX_HIDDEN: Final = 200_000
MAX_HIDDEN_OF_CLIENT: Final = 20_000
LOOK_MS: Final = 200
AT_ONCE: Final = 100
"""How many messages are renewed or given back in one turn."""
MINUTE_MS: Final = 60_000
TIMES_MS: Final = tuple(minutes * MINUTE_MS for minutes in (1, 3, 5, 10, 30, 60))
"""For how long a message is hidden, by how often that was renewed."""
_BUCKET_MS: Final = 1_000
_NEVER: Final = -1

Key = tuple[str, str]
"""The group and the handle that a client was given first."""

T = TypeVar("T")

log = Logger()


class Hidden:
    """A message that is kept hidden; `handle` is the newest, `key` has the first."""

    __slots__ = (
        "begun_ms", "bucket", "busy", "client_id", "failures", "handle", "is_left", "is_orderly",
        "is_settling", "key", "reconsume_times", "times", "topic",
    )  # fmt: skip

    def __init__(
        self, client_id: str, key: Key, topic: str, handle: Handle, *, is_orderly: bool, times: int
    ) -> None:
        self.client_id = client_id
        self.key = key
        self.topic = topic
        self.handle = handle
        self.is_orderly = is_orderly
        self.reconsume_times = times
        self.begun_ms = 0
        self.bucket = _NEVER
        self.times = self.failures = 0
        self.is_settling = False
        """Whether the client has changed the time itself, so that it is not renewed any more."""
        self.is_left = False
        """Whether its client has gone while something was under way."""
        self.busy: Deferred[None] | None = None
        """Fires when what is under way has ended: a renewal, or what settles the message."""

    @property
    def group(self) -> str:
        """The group of the consumer."""
        return self.key[0]


class Renewals:
    """Keeps messages hidden."""

    def __init__(
        self,
        clock: Clock,
        clients: Clients,
        groups: Groups,
        settlements: Settlements,
        config: MessagingConfig,
    ) -> None:
        self._clock = clock
        self._groups = groups
        self._settlements = settlements
        self._config = config
        self._of_client: dict[str, dict[Key, Hidden]] = {}
        self._buckets: dict[int, dict[int, Hidden]] = {}
        """What is due, by the second of the steady clock."""
        self._next = clock.steady_ms() // _BUCKET_MS
        self._leaving: deque[dict[Key, Hidden]] = deque()
        self._looking: Repeating | None = None
        self.count = 0
        clients.on_gone.append(self.client_gone)

    def start(self) -> None:
        """Begins to renew."""
        self._looking = self._clock.every(LOOK_MS, self._look)

    def stop(self) -> None:
        """Ends that; the messages are visible again after their time."""
        if self._looking is not None:
            self._looking.cancel()

    def add(self, hidden: Hidden) -> bool:
        """Keeps a message hidden from now on; returns False if there are too many."""
        its = self._of_client.setdefault(hidden.client_id, {})
        if len(its) >= MAX_HIDDEN_OF_CLIENT or self.count >= MAX_HIDDEN:
            if not its:
                del self._of_client[hidden.client_id]
            return False
        self.forget(its.get(hidden.key))
        its = self._of_client.setdefault(hidden.client_id, its)
        its[hidden.key] = hidden
        self.count += 1
        hidden.begun_ms = self._clock.steady_ms()
        self._plan(hidden, hidden.handle.popped.invisible_time)
        return True

    def keeps(self, client_id: str, group: str, handle_text: str) -> bool:
        """Returns whether a message is kept hidden, so that it has to be looked for first."""
        its = self._of_client.get(client_id)
        return its is not None and (group, handle_text) in its

    async def find(self, client_id: str, group: str, handle_text: str) -> Hidden | None:
        """Returns what is kept of a message, when nothing is under way with it, or None."""
        hidden = self._of_client.get(client_id, {}).get((group, handle_text))
        while hidden is not None and hidden.busy is not None:
            ended: Deferred[None] = Deferred()
            hidden.busy.chainDeferred(ended)
            await ended
            hidden = self._of_client.get(client_id, {}).get((group, handle_text))
        return hidden

    def forget(self, hidden: Hidden | None) -> None:
        """Forgets a message that is settled."""
        if hidden is None:
            return
        its = self._of_client.get(hidden.client_id, {})
        if its.get(hidden.key) is hidden:
            del its[hidden.key]
            self.count -= 1
            if not its:
                del self._of_client[hidden.client_id]
        self._unplan(hidden)

    async def settle(
        self, work: Coroutine[Any, Any, T], *messages: Hidden | None, forgets: bool = True
    ) -> T:
        """Does what settles messages, of which none is renewed meanwhile, and forgets them then.

        Otherwise a renewal could follow an acknowledgement that is under way, and the broker would
        give a message again that was acknowledged.
        """
        busy: Deferred[None] = Deferred()
        buckets = {each: each.bucket for each in messages if each is not None}
        for hidden in buckets:
            self._unplan(hidden)
            hidden.busy = busy
        is_done = False
        try:
            outcome = await work
            is_done = True
        finally:
            for hidden, bucket in buckets.items():
                hidden.busy = None
                if is_done and forgets:
                    self.forget(hidden)
                elif hidden.bucket == _NEVER:
                    self._go_on(hidden, bucket)
            busy.callback(None)
        return outcome

    def _go_on(self, hidden: Hidden, bucket: int) -> None:
        """Plans what was planned before for a message that is not settled after all."""
        if self._is_kept(hidden):
            hidden.bucket = max(bucket, self._next)
            self._buckets.setdefault(hidden.bucket, {})[id(hidden)] = hidden
        elif hidden.is_left:
            self._begin(hidden, self._give_back(hidden))

    def _is_kept(self, hidden: Hidden) -> bool:
        return self._of_client.get(hidden.client_id, {}).get(hidden.key) is hidden

    def changed(self, hidden: Hidden, handle: Handle) -> None:
        """Notes that the client has changed the time itself, by which a new handle came."""
        hidden.handle = handle
        hidden.is_settling = True
        self._plan(hidden, handle.popped.invisible_time + self._config.renew_ahead_time_millis)

    def client_gone(self, client: Client) -> None:
        """Gives back all messages of a client that is gone, in turns."""
        its = self._of_client.pop(client.id, None)
        if its:
            self._leaving.append(its)

    def _plan(self, hidden: Hidden, invisible_ms: int) -> None:
        self._unplan(hidden)
        wait_ms = max(invisible_ms - self._config.renew_ahead_time_millis, _BUCKET_MS)
        hidden.bucket = (self._clock.steady_ms() + wait_ms) // _BUCKET_MS
        self._buckets.setdefault(hidden.bucket, {})[id(hidden)] = hidden

    def _unplan(self, hidden: Hidden) -> None:
        its = self._buckets.get(hidden.bucket)
        if its is not None:
            its.pop(id(hidden), None)
            if not its:
                del self._buckets[hidden.bucket]
        hidden.bucket = _NEVER

    def _look(self) -> None:
        left = AT_ONCE
        while self._leaving and left:
            its = self._leaving[0]
            while its and left:
                _, hidden = its.popitem()
                self.count -= 1
                left -= 1
                self._unplan(hidden)
                if hidden.busy is not None:
                    hidden.is_left = True
                elif not hidden.is_settling:
                    self._begin(hidden, self._give_back(hidden))
            if not its:
                self._leaving.popleft()
        now = self._clock.steady_ms() // _BUCKET_MS
        while self._next <= now and left:
            its_due = self._buckets.get(self._next)
            while its_due and left:
                left -= 1
                _, hidden = its_due.popitem()
                self._unplan(hidden)
                if hidden.is_settling:
                    self.forget(hidden)
                else:
                    self._begin(hidden, self._renew(hidden))
            if its_due:
                return
            self._next += 1

    def _begin(self, hidden: Hidden, work: Coroutine[Any, Any, None]) -> None:
        hidden.busy = Deferred()
        Deferred.fromCoroutine(work).addBoth(self._ended, hidden)

    def _ended(self, outcome: Failure | None, hidden: Hidden) -> None:
        busy, hidden.busy = hidden.busy, None
        if isinstance(outcome, Failure):
            log.failure("a message cannot be kept hidden any more", outcome)
            self.forget(hidden)
        if busy is not None:
            busy.callback(None)

    async def _renew(self, hidden: Hidden) -> None:
        past_ms = self._clock.steady_ms() - hidden.begun_ms
        if past_ms >= await self._most_ms(hidden):
            await self._hide(hidden, _retry_ms(hidden.reconsume_times))
            self.forget(hidden)
            return
        invisible_ms = TIMES_MS[min(hidden.times, len(TIMES_MS) - 1)]
        is_hidden = await self._hide(hidden, invisible_ms)
        if hidden.is_left:
            await self._give_back(hidden)
        elif is_hidden:
            hidden.times += 1
            hidden.failures = 0
            self._replan(hidden, invisible_ms)
        elif hidden.failures >= self._config.max_renew_retry_times:
            self.forget(hidden)
        else:
            retry_ms = self._config.renew_schedule_period_millis
            self._replan(hidden, retry_ms + self._config.renew_ahead_time_millis)

    def _replan(self, hidden: Hidden, invisible_ms: int) -> None:
        """Plans what is next, unless the message was settled or its client has gone meanwhile."""
        if self._is_kept(hidden):
            self._plan(hidden, invisible_ms)

    async def _most_ms(self, hidden: Hidden) -> int:
        if not hidden.is_orderly:
            return self._config.renew_max_time_millis
        group = await self._groups.config(hidden.group)
        return min(self._config.renew_max_time_millis, group.consume_timeout_minute * MINUTE_MS)

    async def _hide(self, hidden: Hidden, invisible_ms: int) -> bool:
        """Hides a message for as long; returns whether that has succeeded."""
        try:
            hidden.handle = await self._settlements.hide(
                hidden.group, hidden.topic, hidden.handle, invisible_ms
            )
        except Refused:
            hidden.failures = self._config.max_renew_retry_times
            return False
        except (MQClientError, RemotingError) as error:
            hidden.failures += 1
            log.warn("a message cannot be hidden for longer: {error}", error=str(error))
            return False
        return True

    async def _give_back(self, hidden: Hidden) -> None:
        await self._hide(hidden, self._config.invisible_time_millis_when_clear)


def _retry_ms(reconsume_times: int) -> int:
    return DEFAULT_RETRY_DELAYS_MS[
        min(max(reconsume_times, 0) + 2, len(DEFAULT_RETRY_DELAYS_MS) - 1)
    ]
