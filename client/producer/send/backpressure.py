# SPDX-License-Identifier: Apache-2.0
"""How much a producer has on its way: messages and bytes that no broker has answered for yet.

When a limit is reached, further sends wait in their order, and their timeouts begin when they are
taken up. So a hundred thousand sends that begin at the same moment succeed as well as one. The
limits are checked before a message is added, so that one that is longer than the limit of bytes
leaves as well.

The limit of messages adapts to the brokers as long as others wait: it begins low, grows with each
answer that comes early in the time of its send, and shrinks with each that comes late. So also a
slow broker, or a machine that has much else to do, answers in time for what is on its way.

Each send goes past here, so `Sending` counts up and down without calling anything as long as
nothing waits. Counterpart of the two semaphores of DefaultMQProducerImpl
(enableBackpressureForAsyncMode), and of max.block.ms of Kafka's producer.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import BackpressureTimeout
from txrocketmq.client.producer.send.waiting_sends import WaitingSends
from txrocketmq.remoting.host.clock import Clock

MIN_SEND_NUM: Final = 10
MIN_SEND_SIZE: Final = 1024 * 1024
FIRST_COUNT: Final = 128
"""How many messages may be on their way before brokers have answered."""
LEAST_COUNT: Final = 16
EARLY: Final = 8
LATE: Final = 3
"""An answer is early or late if it took less or more than this part of the send's time."""


class Backpressure(WaitingSends):
    """What one producer has on its way. `Sending` changes the counts, and calls `go_on`.

    With `backpressure_enable`, the limits are those of the original, which has smallest values.
    """

    def __init__(self, clock: Clock, config: ProducerConfig) -> None:
        super().__init__(clock, config.max_block_ms)
        self._most, self.max_bytes = config.max_in_flight, config.max_in_flight_bytes
        self.max_count = min(self._most, FIRST_COUNT)
        """The limit of messages at present."""
        if config.backpressure_enable:
            self._most = self.max_count = max(config.backpressure_send_num, MIN_SEND_NUM)
            self.max_bytes = max(config.backpressure_send_size, MIN_SEND_SIZE)
        self._adapts = not config.backpressure_enable
        self.count = 0
        self.size_bytes = 0

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
