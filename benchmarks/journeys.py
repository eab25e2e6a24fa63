# SPDX-License-Identifier: Apache-2.0
"""Transactions and pops in process: microseconds of CPU for a message, as sends.py measures sends.

    .venv/bin/python -m benchmarks.journeys [--rounds 12] [--only "commit,ack"]
    .venv/bin/python -m benchmarks.journeys --beside PYTHON
    .venv/bin/python -m benchmarks.journeys --profile commit
    .venv/bin/python -m benchmarks.journeys --operations [--where "a commit"]

A transaction is a half message, its end, and the op message that is written when both are durable;
what is popped is the check point of 32 messages, and an acknowledgement of each. Each of these is
measured alone, in reads of one and of 32 requests. With `--beside` another interpreter, of another
checkout, is measured in turn.

With `--operations` no time is measured: what the interpreter does is counted, on more journeys, of
the name server, the client and the proxy too (counted_journeys.py), and `--where` says where.
"""

import argparse
import cProfile
import pstats
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.asked_broker import COMMIT, ROLLBACK, AskedBroker
from benchmarks.choices import some_of
from benchmarks.counted_journeys import print_costs
from benchmarks.in_turn import LINE, TURNS, compare
from benchmarks.sends import BATCH, READS


class Journeys(AskedBroker):
    """Measures what a broker needs for requests."""

    profile: cProfile.Profile | None = None

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
        return self.receive([self.half_message(n) for n in self.next(count)], in_a_read)

    def commit(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of commits."""
        return self.receive(self.ends(count, COMMIT), in_a_read)

    def rollback(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of rollbacks."""
        return self.receive(self.ends(count, ROLLBACK), in_a_read)

    def op(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of writing op messages, when ends of transactions are durable."""
        self.settle()
        ends = self.ends(count, COMMIT)
        for at in range(0, count, in_a_read):
            self.peer.dataReceived(b"".join(ends[at : at + in_a_read]))
        self.flush()
        return self.spent_us(self.broker.parts.after_durable.put_all)

    def pop(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of pops of 32 messages."""
        self.fill(count * BATCH)
        return self.receive([self.pop_request(n) for n in self.next(count)], in_a_read)

    def ack(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of acknowledgements, one for each message."""
        return self.receive(self.acks(count), in_a_read)

    def revive(self, count: int, in_a_read: int) -> float:
        """Returns the CPU time of reading back the records of pops and acknowledgements."""
        revive, clock = self.broker.parts.pop.revive, self.broker.clock
        self.receive(self.acks(count), 32)
        return self.spent_us(lambda: revive.tick(clock.now_ms(), clock.steady_ms()))


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
    parser.add_argument("--operations", action="store_true", help="count, and do not measure")
    parser.add_argument("--where", help="print where the operations of one journey are")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.operations or options.where:
        print_costs(options.where)
        return
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
