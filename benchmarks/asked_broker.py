# SPDX-License-Identifier: Apache-2.0
"""A broker without a network, and the requests of transactions and pops that depend on answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import frames
from benchmarks.sends import BATCH, QUEUES, USER, Bench, Sink, frame, json_send, plain

GROUP: Final = "bench-group"
PRODUCERS: Final = "bench-producer"
HALF: Final = f"\x02TRAN_MSG\x01true\x02PGROUP\x01{PRODUCERS}"
PREPARED, COMMIT, ROLLBACK = 4, 8, 12


class Listener(Sink):
    """A connection that keeps its answers while somebody wants them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: bytearray | None = None

    def write(self, data: bytes) -> None:
        """Keeps the data, if it is wanted."""
        if self.kept is not None:
            self.kept += data

    def writeSequence(self, data: Any) -> None:  # noqa: N802 - ITransport
        """Keeps the data, if it is wanted."""
        if self.kept is not None:
            self.kept += b"".join(data)


class AskedBroker(Bench):
    """A broker, and the requests of a producer of transactions and of a consumer that pops."""

    codes = frozenset({0})
    """The codes of answers that are no refusals."""

    def __init__(
        self, folder: Path, store_settings: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        super().__init__(folder, store_settings, **settings)
        self.sink = Listener()
        self.peer = self.broker.clock.reactor.tcpServers[0][1].buildProtocol(None)
        self.peer.makeConnection(self.sink)
        self.number = 0
        # Makes the topic and its queues, with something in them.
        self.answers(b"".join(json_send(n, plain(n)) for n in range(QUEUES)))

    def next(self, count: int) -> range:
        """Returns numbers that have not been used yet."""
        self.number += count
        return range(self.number - count, self.number)

    def answers(self, *reads: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Returns the answers to the requests in some reads."""
        kept = self.sink.kept = bytearray()
        for read in reads:
            self.peer.dataReceived(read)
        self.sink.kept = None
        found, rest = frames.split(bytes(kept))
        wrong = [header for header, _ in found if header["code"] not in self.codes]
        if wrong or rest:
            raise SystemExit(f"benchmarks.journeys: refused with {wrong[:1]}")
        return found

    @staticmethod
    def half_message(n: int) -> bytes:
        """Returns a half message with the properties of a user, flagged as clients flag it."""
        return json_send(n, plain(n, HALF + USER), sys_flag=PREPARED)

    def ends(self, count: int, kind: int) -> list[bytes]:
        """Returns the ends of transactions, whose half messages it has stored."""
        made = []
        for answer, _ in self.answers(*map(self.half_message, self.next(count))):
            found = answer["extFields"]
            fields = {
                "producerGroup": PRODUCERS,
                "fromTransactionCheck": "false",
                "commitLogOffset": str(int(found["msgId"][-16:], 16)),
                "commitOrRollback": str(kind),
                "tranStateTableOffset": found["queueOffset"],
                "msgId": found["transactionId"],
                "transactionId": found["transactionId"],
            }
            made.append(request(37, fields, answer["opaque"], flag=2))
        return made

    def flush(self) -> None:
        """Makes all that is written durable, without calling what waits for that."""
        flush = self.broker.parts.store.flush
        while (job := flush.begin()) is not None:
            job.run()
            flush.finish(job)
            if flush.flushed_offset >= self.broker.parts.store.max_physical_offset:
                break

    def settle(self) -> None:
        """Has the op messages written that wait for the disk."""
        self.flush()
        self.broker.parts.after_durable.put_all()

    def fill(self, count: int) -> None:
        """Stores messages, over all queues."""
        for _ in range(0, count, BATCH):
            self.answers(b"".join(json_send(n, plain(n)) for n in self.next(BATCH)))

    @staticmethod
    def pop_request(n: int) -> bytes:
        """Returns a pop of 32 messages."""
        fields = {
            "queueId": "-1",
            "maxMsgNums": "32",
            "invisibleTime": "60000",
            "topic": "bench",
            "consumerGroup": GROUP,
            "pollTime": "0",
            "bornTime": "0",
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
            "order": "false",
        }
        return request(200050, fields, n)

    def acks(self, count: int) -> list[bytes]:
        """Returns acknowledgements of messages, which it has stored and popped."""
        made: list[bytes] = []
        while len(made) < count:
            self.fill(BATCH)
            ((answer, _),) = self.answers(self.pop_request(self.number))
            found = answer["extFields"]
            starts = {
                words[1]: words[2]
                for each in found["startOffsetInfo"].split(";")
                if (words := each.split(" "))
            }
            for each in found["msgOffsetInfo"].split(";"):
                retry, queue_id, offsets = each.split(" ")
                made += [
                    self._ack(found, starts[queue_id], retry, queue_id, offset)
                    for offset in offsets.split(",")
                ]
        return made[:count]

    def _ack(self, found: Any, start: str, retry: str, queue_id: str, offset: str) -> bytes:
        (number,) = self.next(1)
        handle = (
            f"{start} {found['popTime']} {found['invisibleTime']} {found['reviveQid']} {retry}"
            f" broker-a {queue_id} {offset}"
        )
        fields = {
            "queueId": queue_id,
            "extraInfo": handle,
            "offset": offset,
            "topic": "bench",
            "consumerGroup": GROUP,
        }
        return request(200051, fields, number)


def request(
    code: int, fields: dict[str, str], opaque: int, *, flag: int = 0, body: bytes = b""
) -> bytes:
    """Encodes a request as the Java client does."""
    header = {
        "code": code,
        "extFields": fields,
        "flag": flag,
        "language": "JAVA",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 453,
    }
    return frame(json.dumps(header, separators=(",", ":")).encode(), body, 0)
