# SPDX-License-Identifier: Apache-2.0
"""How much a producer has on its way: messages and bytes that no broker has answered for yet.

When a limit is reached, further sends wait in their order, and their timeouts begin when they are
taken up. So a hundred thousand sends that begin at the same moment succeed as well as one. A send
that waits has neither a parcel nor a timer of its own. The limits are checked before a message is
added, so that one that is longer than the limit of bytes leaves as well.

The limit of messages adapts to the brokers as long as others wait: it begins low, grows with each
answer that comes early in the time of its send, and shrinks with each that comes late. So also a
slow broker, or a machine that has much else to do, answers in time for what is on its way.

Each send goes past here, so `Sending` counts up and down without calling anything as long as
nothing waits. Counterpart of the two semaphores of DefaultMQProducerImpl
(enableBackpressureForAsyncMode), and of max.block.ms of Kafka's producer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import BackpressureTimeout, ClientClosed
from txrocketmq.client.thread.pending_calls import Cancellable
from txrocketmq.remoting.host.clock import Clock

MIN_SEND_NUM: Final = 10
MIN_SEND_SIZE: Final = 1024 * 1024
AT_ONCE: Final = 256
"""How many sends are taken up, or ended, in one turn of the reactor at most."""
FIRST_COUNT: Final = 128
"""How many messages may be on their way before brokers have answered."""
LEAST_COUNT: Final = 16
EARLY: Final = 8
LATE: Final = 3
"""An answer is early or late if it took less or more than this part of the send's time."""
BEHIND: Final = 1_024
"""While so many sends wait, callers that do not wait for results are held up."""


class WaitingSend:
    """A send that waits for room, and afterwards stands for what has begun."""

    __slots__ = ("_begin", "_room", "_running", "_settle", "until_ms")

    def __init__(
        self,
        room: Backpressure,
        settle: Callable[[Any], None],
        begin: Callable[[Callable[[Any], None]], Cancellable | None],
        until_ms: int,
    ) -> None:
        self._room = room
        self._settle = settle
        self._begin: Callable[[Callable[[Any], None]], Cancellable | None] | None = begin
        self._running: Cancellable | None = None
        self.until_ms = until_ms

    def take_up(self) -> None:
        """Begins the send."""
        begin, self._begin = self._begin, None
        assert begin is not None
        try:
            self._running = begin(self._settle)
        except BaseException:  # noqa: BLE001 - it is raised where somebody waits for it
            self._settle(Failure())

    def end(self, error: Exception) -> None:
        """Ends the send, which has not begun, with an error."""
        self._begin = None
        self._settle(Failure(error))

    def cancel(self) -> None:
        """Gives up its place, or cancels what has begun."""
        if self._begin is not None:
            self._room.forget(self)
            self.end(CancelledError())
        elif self._running is not None:
            self._running.cancel()


class Backpressure:
    """What one producer has on its way. `Sending` changes the counts, and calls `go_on`.

    With `backpressure_enable`, the limits are those of the original, which has smallest values.
    """

    def __init__(self, clock: Clock, config: ProducerConfig) -> None:
        self._clock = clock
        self._max_block_ms = config.max_block_ms
        self._most, self.max_bytes = config.max_in_flight, config.max_in_flight_bytes
        self.max_count = min(self._most, FIRST_COUNT)
        """The limit of messages at present."""
        if config.backpressure_enable:
            self._most = self.max_count = max(config.backpressure_send_num, MIN_SEND_NUM)
            self.max_bytes = max(config.backpressure_send_size, MIN_SEND_SIZE)
        self._adapts = not config.backpressure_enable
        self.count = 0
        self.size_bytes = 0
        self.is_full = False
        """Whether a send has to wait: a limit is reached, or others wait already."""
        self.is_behind = False
        """Whether so many sends wait that callers should wait as well; any thread may ask."""
        self._waiting: OrderedDict[WaitingSend, None] = OrderedDict()
        self._late: IDelayedCall | None = None
        self._soon: IDelayedCall | None = None
        self._going_on = False
        self._is_closed = False
        self._caught_up: list[Deferred[None]] = []

    @property
    def waiting(self) -> int:
        """The number of sends that wait."""
        return len(self._waiting)

    def wait(
        self,
        settle: Callable[[Any], None],
        begin: Callable[[Callable[[Any], None]], Cancellable | None],
    ) -> WaitingSend:
        """Calls `begin` when there is room; `settle` gets the result, as of any `Begin`.

        It fails with BackpressureTimeout after `max_block_ms`. Raises ClientClosed after `close`.
        """
        if self._is_closed:
            raise _closed()
        until_ms = self._clock.steady_ms() + self._max_block_ms
        waiting = WaitingSend(self, settle, begin, until_ms)
        self._waiting[waiting] = None
        self.is_behind = len(self._waiting) >= BEHIND
        if self._late is None:
            self._late = self._clock.later(self._max_block_ms, self._end_late)
        return waiting

    def forget(self, waiting: WaitingSend) -> None:
        """Forgets a send that waits no more."""
        del self._waiting[waiting]
        self._changed()

    def left(self, deadline_ms: int, timeout_ms: int) -> None:
        """Adapts the limit to a send that has ended, and takes up others that wait.

        To be called after each send while the room `is_full`.
        """
        if self._adapts and self._waiting:
            took_ms = timeout_ms - (deadline_ms - self._clock.steady_ms())
            if took_ms * EARLY < timeout_ms:
                self.max_count = min(self.max_count + 1, self._most)
            elif took_ms * LATE > timeout_ms:
                self.max_count = max(self.max_count - 1, min(LEAST_COUNT, self._most))
        self.go_on()

    def go_on(self) -> None:
        """Takes up sends that wait, as far as there is room."""
        if self._going_on:
            return  # a send that was taken up has failed at once, and the loop below goes on
        self._going_on = True
        left = AT_ONCE
        try:
            while self._waiting and self._has_room():
                if not left:
                    self._go_on_soon()
                    break
                left -= 1
                self._waiting.popitem(last=False)[0].take_up()
        finally:
            self._going_on = False
            self._changed()

    async def caught_up(self) -> None:
        """Waits until fewer sends wait, for callers that do not wait for results."""
        if self.is_behind:
            caught_up: Deferred[None] = Deferred()
            self._caught_up.append(caught_up)
            await caught_up

    async def close(self) -> None:
        """Ends the sends that wait, since the producer is shut down."""
        self._is_closed = True
        while self._waiting:
            for _ in range(min(len(self._waiting), AT_ONCE)):
                self._waiting.popitem(last=False)[0].end(_closed())
            self._changed()
            await self._clock.pause(0)
        for delayed in (self._late, self._soon):
            if delayed is not None and delayed.active():
                delayed.cancel()
        self._late = None

    def late(self, waited_ms: int) -> BackpressureTimeout:
        """Returns the error of a send that has waited in vain."""
        return BackpressureTimeout(
            f"the message was not sent: it waited for {waited_ms} ms while {self.count} messages"
            f" of {self.size_bytes} bytes were on their way, which is as much as there may be, and"
            f" {len(self._waiting)} others waited too; send more slowly, or see max_block_ms and"
            " max_in_flight"
        )

    def _has_room(self) -> bool:
        return self.count < self.max_count and self.size_bytes < self.max_bytes

    def _changed(self) -> None:
        waiting = len(self._waiting)
        self.is_full = waiting > 0 or not self._has_room()
        if self.is_behind and waiting <= BEHIND // 2:
            self.is_behind = False
            caught_up, self._caught_up = self._caught_up, []
            for each in caught_up:
                if not each.called:  # otherwise its caller was interrupted
                    each.callback(None)

    def _go_on_soon(self) -> None:
        if self._soon is None:
            self._soon = self._clock.later(0, self._went_on)

    def _went_on(self) -> None:
        self._soon = None
        self.go_on()

    def _end_late(self) -> None:
        """Ends what has waited too long; the first of those that wait came first."""
        self._late = None
        steady_ms = self._clock.steady_ms()
        for _ in range(AT_ONCE):
            first = next(iter(self._waiting), None)
            if first is None or first.until_ms > steady_ms:
                break
            del self._waiting[first]
            first.end(self.late(self._max_block_ms))
        self._changed()
        first = next(iter(self._waiting), None)
        if first is not None and self._late is None:
            self._late = self._clock.later(max(first.until_ms - steady_ms, 0), self._end_late)


def _closed() -> ClientClosed:
    return ClientClosed("the message was not sent: the producer was shut down while it waited")
