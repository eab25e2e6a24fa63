# SPDX-License-Identifier: Apache-2.0
"""The journeys of a broker whose operations are counted: requests, and what it does by itself.

A whole broker serves them on a reactor without a network, as sends.py and journeys.py do. Each
journey includes what the broker does for it at the end of the turn and in the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import frames
from benchmarks.asked_broker import COMMIT, GROUP, PRODUCERS, ROLLBACK, AskedBroker, request
from benchmarks.operations import Call
from benchmarks.sends import (
    BATCH,
    QUEUES,
    TAGGED,
    USER,
    json_send,
    plain,
)

DELAYED: Final = "\x02DELAY\x011"
DUE: Final = 128
"""How many delayed messages a level delivers at once."""
ROUND_MS: Final = 60_000
"""How far time is moved on for what a broker does by itself, in ms."""
_SUSPEND, _SUBSCRIPTION = 2, 4


class BrokerJourneys(AskedBroker):
    """A broker, and a client with a producer group and two consumer groups."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self._pulled = [0] * QUEUES
        self._turn = 0
        self._ahead_ms = 0
        self._open: list[bytes] = []
        """What ends the transactions that are open."""
        self.answers(frames.consumer_heartbeat("bench", GROUP, "bench", opaque=1, version=1))
        beat = {"clientID": "bench", "producerDataSet": [{"groupName": PRODUCERS}]}
        self.answers(request(34, {}, 1, body=json.dumps(beat).encode()))
        self._check()()  # without a first round the broker would still look for older copies
        # What is done once for many messages would fall into the count of one or another.
        index: Any = self.broker.parts.store._index  # noqa: SLF001 - as sends.py does
        index.write_pending = lambda *_: None

    def received(self, data: bytes) -> None:
        """Serves a read, to the end of what is to be done at once."""
        self.peer.dataReceived(data)
        self.broker.clock.reactor.advance(0)

    # ----------------------------------------------------------------- sends

    def sends(self, make: Callable[[int], bytes], count: int) -> Iterator[Call]:
        """Sends, all in one read."""
        yield partial(self.received, b"".join(map(make, self.next(count))))

    def send_back(self) -> Iterator[Call]:
        """A consumer gives a message back."""
        ((answer, _),) = self.answers(self._plain_send())
        fields = {
            "offset": str(int(answer["extFields"]["msgId"][-16:], 16)),
            "group": GROUP,
            "delayLevel": "3",
            "originMsgId": "x",
            "originTopic": "bench",
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        }
        yield partial(self.received, request(36, fields, self.number))

    # ----------------------------------------------------------------- pulls

    def pull(self) -> Iterator[Call]:
        """A pull of all messages of a queue, from where the last one has ended."""
        at = self.pull_place(BATCH)
        (number,) = self.next(1)
        pull = frames.pull_message("bench", GROUP, *at, opaque=number, version=1)
        yield partial(self.received, pull)

    def pull_tag(self) -> Iterator[Call]:
        """A pull of the messages with a tag, of which every second one has it."""
        queue_id, offset = self.pull_place(2 * BATCH)
        yield partial(self.received, self._pull(queue_id, offset, "paid"))

    def pull_one(self) -> Iterator[Call]:
        """A pull that finds the last message of a queue."""
        self.answers(self._plain_send())
        (number,) = self.next(1)
        queue_id = (number - 1) % QUEUES
        offset = self._end(queue_id) - 1
        pull = frames.pull_message("bench", GROUP, queue_id, offset, opaque=number, version=1)
        yield partial(self.received, pull)

    def wait(self) -> Iterator[Call]:
        """A pull that finds nothing, and waits."""
        yield partial(self.received, self._waiting_pull())
        self.received(self._plain_send())

    def wake(self) -> Iterator[Call]:
        """A send that wakes a pull which waits."""
        self.received(self._waiting_pull())
        yield partial(self.received, self._plain_send())

    def _waiting_pull(self) -> bytes:
        queue_id = (self.number + 1) % QUEUES  # the next one is the pull, then comes the send
        (number,) = self.next(1)
        return frames.pull_message(
            "bench", GROUP, queue_id, self._end(queue_id), opaque=number, version=1
        )

    def pull_place(self, count: int) -> tuple[int, int]:
        """Returns a queue and an offset behind which there are so many messages."""
        self._turn += 1
        queue_id = self._turn % QUEUES
        offset = self._pulled[queue_id]
        while self._end(queue_id) < offset + count:
            numbers = self.next(QUEUES)
            made = (
                json_send(n, plain(n, TAGGED if n // QUEUES % 2 else "\x02TAGS\x01open"))
                for n in numbers
            )
            self.answers(b"".join(made))
        self._pulled[queue_id] += count
        return queue_id, offset

    def _pull(self, queue_id: int, offset: int, subscription: str) -> bytes:
        fields = {
            "consumerGroup": GROUP,
            "topic": "bench",
            "queueId": str(queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": str(BATCH),
            "sysFlag": str(_SUBSCRIPTION | _SUSPEND),
            "commitOffset": "0",
            "suspendTimeoutMillis": "15000",
            "subVersion": "0",
            "subscription": subscription,
            "expressionType": "TAG",
        }
        (number,) = self.next(1)
        return request(11, fields, number)

    def _end(self, queue_id: int) -> int:
        end: int = self.broker.parts.store.max_offset("bench", queue_id)
        return end

    def _plain_send(self) -> bytes:
        (number,) = self.next(1)
        return json_send(number, plain(number))

    # ------------------------------------------------------------------ pops

    def pops(self) -> Iterator[Call]:
        """A pop of 32 messages of 8 queues."""
        self.fill(BATCH)
        (number,) = self.next(1)
        yield partial(self.received, self.pop_request(number))

    def acknowledgements(self, count: int) -> Iterator[Call]:
        """Acknowledgements, all in one read."""
        yield partial(self.received, b"".join(self.acks(count)))

    def invisible(self) -> Iterator[Call]:
        """Another invisible time of a popped message."""
        (ack,) = self.acks(1)
        [(header, _)], _ = frames.split(ack)
        fields = {**header["extFields"], "invisibleTime": "30000"}
        yield partial(self.received, request(200053, fields, self.number))

    # ---------------------------------------------------------- transactions

    def halves(self, count: int) -> Iterator[Call]:
        """Half messages, all in one read."""
        yield partial(self.received, b"".join(map(self.half_message, self.next(count))))

    def commits(self, count: int) -> Iterator[Call]:
        """Commits, all in one read."""
        yield partial(self.received, b"".join(self.ends(count, COMMIT)))

    def rollbacks(self, count: int) -> Iterator[Call]:
        """Rollbacks, all in one read."""
        yield partial(self.received, b"".join(self.ends(count, ROLLBACK)))

    def ops(self) -> Iterator[Call]:
        """Op messages, which are written when 32 commits are durable."""
        self.settle()
        self.received(b"".join(self.ends(BATCH, COMMIT)))
        self.flush()
        yield self.broker.parts.after_durable.put_all

    def check_ended(self) -> Iterator[Call]:
        """A check of 32 transactions that have ended."""
        self._end_all()
        self.received(b"".join(self.ends(BATCH, COMMIT)))
        self.settle()
        self.flush()
        yield self._check()

    def check_open(self) -> Iterator[Call]:
        """A check of 32 transactions, about each of which a producer is asked."""
        self._end_all()
        self._open = self.ends(BATCH, ROLLBACK)
        self.flush()
        yield self._check()

    def _end_all(self) -> None:
        """Ends what is open, and has the check notice that."""
        self.received(b"".join(self._open))
        self._open = []
        self.settle()
        self.flush()
        self._check()()

    def _check(self) -> Call:
        """Returns a round of the check."""
        return partial(self.broker.parts.transaction_check.tick, *self._later())

    def _later(self) -> tuple[int, int]:
        """Returns both times, a minute after those that were returned before."""
        self._ahead_ms += ROUND_MS
        clock = self.broker.clock
        return clock.now_ms() + self._ahead_ms, clock.steady_ms() + self._ahead_ms

    # ---------------------------------------------------------------- delays

    def delayed(self) -> Iterator[Call]:
        """Delivery of 128 delayed messages, in the same moment as others, as under load."""
        if not self._ahead_ms:
            self._later()
        made = (json_send(n, plain(n, DELAYED + USER)) for n in self.next(DUE))
        self.answers(b"".join(made))
        clock, ahead_ms = self.broker.clock, self._ahead_ms
        yield partial(
            self.broker.parts.schedule.tick,
            clock.now_ms() + ahead_ms,
            clock.steady_ms() + ahead_ms,
        )

    # ---------------------------------------------------------------- clients

    def heartbeat(self) -> Iterator[Call]:
        """A consumer's heartbeat, which says what the last one said."""
        (number,) = self.next(1)
        beat = frames.consumer_heartbeat("bench", GROUP, "bench", opaque=number, version=1)
        yield partial(self.received, beat)

    def commit_offset(self) -> Iterator[Call]:
        """A consumer's progress, one-way, as its client tells it every 5 s."""
        (number,) = self.next(1)
        fields = {**self._queue_fields(number), "commitOffset": str(number % 8)}
        yield partial(self.received, request(15, fields, number, flag=2))

    def query_offset(self) -> Iterator[Call]:
        """The question for a consumer's progress."""
        (number,) = self.next(1)
        self.received(request(15, {**self._queue_fields(number), "commitOffset": "1"}, number))
        yield partial(self.received, request(14, self._queue_fields(number), number))

    @staticmethod
    def _queue_fields(number: int) -> dict[str, str]:
        return {"consumerGroup": GROUP, "topic": "bench", "queueId": str(number % QUEUES)}
