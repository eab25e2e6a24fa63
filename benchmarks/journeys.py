# SPDX-License-Identifier: Apache-2.0
"""Transactions and pops in process: microseconds of CPU for a message, as sends.py measures sends.

    .venv/bin/python -m benchmarks.journeys [--rounds 12] [--only "commit,ack"]
    .venv/bin/python -m benchmarks.journeys --beside PYTHON
    .venv/bin/python -m benchmarks.journeys --profile commit

A transaction is a half message, its end, and the op message that is written when both are durable;
what is popped is the check point of 32 messages, and an acknowledgement of each. Each of these is
measured alone, in reads of one and of 32 requests. With `--beside` another interpreter, of another
checkout, is measured in turn.
"""

import argparse
import cProfile
import json
import pstats
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import frames
from benchmarks.choices import some_of
from benchmarks.in_turn import LINE, TURNS, compare
from benchmarks.sends import BATCH, QUEUES, READS, USER, Bench, Sink, frame, json_send, plain

GROUP: Final = "bench-group"
HALF: Final = "\x02TRAN_MSG\x01true\x02PGROUP\x01bench-producer"
_COMMIT, _ROLLBACK = 8, 12


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


class Journeys(Bench):
    """A broker, and the requests of a producer of transactions and of a consumer that pops."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sink = Listener()
        self.peer = self.broker.clock.reactor.tcpServers[0][1].buildProtocol(None)
        self.peer.makeConnection(self.sink)
        self.number = 0
        self.profile: cProfile.Profile | None = None
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
        wrong = [header for header, _ in found if header["code"]]
        if wrong or rest:
            raise SystemExit(f"benchmarks.journeys: refused with {wrong[:1]}")
        return found

    def spent_us(self, work: Callable[[], object]) -> float:
        """Returns the CPU time of some work."""
        if self.profile is not None:
            self.profile.enable()
        started = time.process_time()
        work()
        spent = time.process_time() - started
        if self.profile is not None:
            self.profile.disable()
        return spent * 1e6

    def receive(self, requests: list[bytes], in_a_read: int) -> float:
        """Returns the CPU time of some requests, with so many in each read."""
        reads = [
            b"".join(requests[at : at + in_a_read]) for at in range(0, len(requests), in_a_read)
        ]

        def work() -> None:
            for read in reads:
                self.peer.dataReceived(read)

        return self.spent_us(work)

    # ------------------------------------------------------------------ loads

    def half(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of half messages."""
        return self.receive([self._half(n) for n in self.next(count)], in_a_read)

    def commit(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of commits."""
        return self._end(count, in_a_read, _COMMIT)

    def rollback(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of rollbacks."""
        return self._end(count, in_a_read, _ROLLBACK)

    def op(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of writing op messages, when ends of transactions are durable."""
        self._settle()
        self._end(count, in_a_read, _COMMIT, is_measured=False)
        self._flush()
        return self.spent_us(self.broker.parts.after_durable.put_all)

    def pop(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of pops of 32 messages."""
        self._fill(count * BATCH)
        return self.receive([self._pop(n) for n in self.next(count)], in_a_read)

    def ack(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of acknowledgements, one for each message."""
        return self.receive(self._acks(count), in_a_read)

    def revive(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of reading back the records of pops and acknowledgements."""
        revive, clock = self.broker.parts.pop.revive, self.broker.clock
        self.receive(self._acks(count), 32)
        return self.spent_us(lambda: revive.tick(clock.now_ms(), clock.steady_ms()))

    # ------------------------------------------------------------------ parts

    @staticmethod
    def _half(n: int) -> bytes:
        return json_send(n, plain(n, HALF + USER))

    def _end(self, count: int, in_a_read: int, kind: int, *, is_measured: bool = True) -> float:
        numbers = self.next(count)
        ends = []
        for answer, _ in self.answers(*map(self._half, numbers)):
            found = answer["extFields"]
            fields = {
                "producerGroup": "bench-producer",
                "fromTransactionCheck": "false",
                "commitLogOffset": str(int(found["msgId"][-16:], 16)),
                "commitOrRollback": str(kind),
                "tranStateTableOffset": found["queueOffset"],
                "msgId": found["transactionId"],
                "transactionId": found["transactionId"],
            }
            ends.append(_request(37, fields, answer["opaque"], flag=2))
        if not is_measured:
            for at in range(0, count, in_a_read):
                self.peer.dataReceived(b"".join(ends[at : at + in_a_read]))
            return 0.0
        return self.receive(ends, in_a_read)

    def _flush(self) -> None:
        """Makes all that is written durable, without calling what waits for that."""
        flush = self.broker.parts.store.flush
        while (job := flush.begin()) is not None:
            job.run()
            flush.finish(job)
            if flush.flushed_offset >= self.broker.parts.store.max_physical_offset:
                break

    def _settle(self) -> None:
        self._flush()
        self.broker.parts.after_durable.put_all()

    def _fill(self, count: int) -> None:
        for _ in range(0, count, BATCH):
            self.answers(b"".join(json_send(n, plain(n)) for n in self.next(BATCH)))

    @staticmethod
    def _pop(n: int) -> bytes:
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
        return _request(200050, fields, n)

    def _acks(self, count: int) -> list[bytes]:
        made: list[bytes] = []
        while len(made) < count:
            self._fill(BATCH)
            ((answer, _),) = self.answers(self._pop(self.number))
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
        return _request(200051, fields, number)


def _request(code: int, fields: dict[str, str], opaque: int, *, flag: int = 0) -> bytes:
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
    return frame(json.dumps(header, separators=(",", ":")).encode(), b"", 0)


LOADS: Final[dict[str, Callable[[Journeys, int, int], float]]] = {
    "half": Journeys.half,
    "commit": Journeys.commit,
    "rollback": Journeys.rollback,
    "op": Journeys.op,
    "pop": Journeys.pop,
    "ack": Journeys.ack,
    "revive": Journeys.revive,
}


def measure(rounds: int, only: list[str], profile: cProfile.Profile | None = None) -> None:
    """Prints the microseconds of a request for each load, with one and with 32 in a read."""
    folder = tempfile.mkdtemp()
    try:
        bench = Journeys(Path(folder))
        best: dict[str, tuple[float, float]] = {}
        for turn in range(rounds):
            bench.profile = profile if turn else None
            for name in only:
                one = LOADS[name](bench, READS // 4, 1) / (READS // 4)
                many = LOADS[name](bench, READS, 32) / READS
                known = best.get(name, (one, many))
                best[name] = min(known[0], one), min(known[1], many)
        for name, (one, many) in best.items():
            print(LINE.format(name=name, one=one, many=many))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Reads the arguments, and prints a table."""
    parser = argparse.ArgumentParser(description="Measures transactions and pops in process.")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", type=some_of(LOADS), default=list(LOADS))
    parser.add_argument("--beside", help="another interpreter, to be measured in turn")
    parser.add_argument("--profile", choices=LOADS, help="print where the time of one goes")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile:
        profile = cProfile.Profile()
        measure(options.rounds, [options.profile], profile)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return
    if options.bare:
        measure(options.rounds, options.only)
        return
    rounds = str(max(options.rounds // TURNS, 1))
    only = ",".join(options.only)
    arguments = ["-m", "benchmarks.journeys", "--bare", "--only", only, "--rounds", rounds]
    compare(options.beside, arguments, options.only, "microseconds of CPU a request")


if __name__ == "__main__":
    main()
