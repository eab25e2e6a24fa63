# SPDX-License-Identifier: Apache-2.0
"""Instructions of the processor for a request, from the bytes of a read to the answers.

    .venv/bin/python -m benchmarks.instructions [--load "JSON, 3 properties"]...

What `benchmarks.sends` measures in time is counted here, by valgrind: the interpreter, the compiled
kernel and the C library, but not the operating system. So are half messages, commits, pulls of 32
messages, calls of gRPC at a proxy, with the little that stands for its broker, and signed requests
beside unsigned ones (`--load "send, JSON, ACL 2"`). The number is the same each time, however busy
the machine is, so a test can hold it below a limit. It is another one with another interpreter, and
with `TXROCKETMQ_KERNEL=off`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import frames, signed
from benchmarks.asked_broker import COMMIT, GROUP
from benchmarks.broker_journeys import BrokerJourneys
from benchmarks.operations import Call
from benchmarks.proxy_journeys import CALLS, ProxyJourneys
from benchmarks.sends import BATCH, LOADS, Bench

WARM_MESSAGES: Final = 2_048
COUNTED_MESSAGES: Final = 4_096
IN_A_READ: Final = (1, 32)
_REFERENCES: Final = re.compile(r"I\s+refs:\s+([\d,]+)")
_TIMEOUT_S: Final = 900
_ROOT: Final = Path(__file__).resolve().parents[1]


def _halves(broker: BrokerJourneys, count: int) -> list[bytes]:
    return [broker.half_message(n) for n in broker.next(count)]


def _commits(broker: BrokerJourneys, count: int) -> list[bytes]:
    return broker.ends(count, COMMIT)


def _pulls(broker: BrokerJourneys, count: int) -> list[bytes]:
    return [
        frames.pull_message("bench", GROUP, *broker.pull_place(BATCH), opaque=n, version=1)
        for n in range(count)
    ]


JOURNEYS: Final[dict[str, Callable[[BrokerJourneys, int], list[bytes]]]] = {
    "half message": _halves,
    "commit": _commits,
    "pull of 32": _pulls,
}
"""By name: what makes so many requests, which may depend on earlier answers."""
ACCOUNTS: Final[dict[str, tuple[str, str]]] = {
    f"{load}, {kind}": (load, kind) for load in signed.LOADS for kind in signed.KINDS
}
"""By name: a load of signed.py, and the accounts of the broker that serves it."""


class NoValgrind(Exception):
    """There is no valgrind, or it does not run here."""


def instructions(loads: Iterable[tuple[str, int]]) -> dict[tuple[str, int], float]:
    """Returns the instructions a message of loads with so many sends in a read.

    Raises NoValgrind.
    """
    wanted = list(loads)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NoValgrind("there is no valgrind")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            valgrind, "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={os.devnull}",
            f"--log-file={folder}/%p.log", sys.executable, "-m", "benchmarks.instructions",
            "--within", folder, json.dumps(wanted),
        ]  # fmt: skip
        # With another seed, dictionaries of texts would be laid out differently each time.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        try:
            done = subprocess.run(
                command, cwd=_ROOT, env=environment, capture_output=True, text=True,
                timeout=_TIMEOUT_S, check=True,
            )  # fmt: skip
        except subprocess.CalledProcessError as error:
            raise NoValgrind(f"it fails: {error.stderr[-500:]}") from None
        before, *counts = (_counted(Path(folder), pid) for pid in json.loads(done.stdout))
    messages = [_shape(*each)[1] for each in wanted]
    return {
        each: (count - before) / number
        for each, count, number in zip(wanted, counts, messages, strict=True)
    }


def _counted(folder: Path, pid: int) -> int:
    found = _REFERENCES.search((folder / f"{pid}.log").read_text())
    if found is None:
        raise NoValgrind("it does not count instructions")
    return int(found[1].replace(",", ""))


def _shape(name: str, sends: int) -> tuple[int, int]:
    """How many reads are counted, and how many messages these have."""
    weight = LOADS[name][1] if name in LOADS else 1
    reads = max(COUNTED_MESSAGES // 8 // sends, 16)
    return reads, reads * sends * weight


def _within(folder: Path, loads: list[tuple[str, int]]) -> None:
    """Serves each load in a process of its own, all of which begin at the same place.

    So what the first of them counts, which serves nothing, is what all others count besides.
    """
    names = {name for name, _ in loads}
    benches = _benches(folder, names - {*CALLS})
    proxy = ProxyJourneys(folder) if names & {*CALLS} else None

    def steps(name: str, sends: int, count: int, first: int) -> list[Call]:
        if name in CALLS:
            assert proxy is not None
            return proxy.turns(name, count * sends, sends)
        reads = _reads(benches[name], name, sends, count, first)
        return [partial(benches[name].peer.dataReceived, data) for data in reads]

    for name, sends in loads:
        for step in steps(name, sends, max(WARM_MESSAGES // 8 // sends, 8), 0):
            step()
    counted = [steps(name, sends, _shape(name, sends)[0], 1 << 20) for name, sends in loads]
    pids = []
    for its_steps in [[], *counted]:
        pid = os.fork()
        if not pid:
            for step in its_steps:
                step()
            os._exit(0)
        os.waitpid(pid, 0)
        pids.append(pid)
    print(json.dumps(pids))


def _benches(folder: Path, names: set[str]) -> dict[str, Bench]:
    """Returns a broker for each load; those that can be are the same one."""
    of_accounts = {kind for name, (_, kind) in ACCOUNTS.items() if name in names}
    made: dict[str, Bench] = {kind: signed.Accounts(folder / kind, kind) for kind in of_accounts}
    others = names - {*ACCOUNTS}
    if others:
        made[""] = (BrokerJourneys if others & {*JOURNEYS} else Bench)(folder / "store")
    return {name: made[ACCOUNTS[name][1] if name in ACCOUNTS else ""] for name in names}


def _reads(bench: Bench, name: str, sends: int, count: int, first: int) -> list[bytes]:
    if isinstance(bench, BrokerJourneys) and name in JOURNEYS:
        requests = JOURNEYS[name](bench, count * sends)
    elif isinstance(bench, signed.Accounts):
        make = signed.LOADS[ACCOUNTS[name][0]]
        requests = [bench.sealed(make(n)) for n in bench.next(count * sends)]
    else:
        requests = [LOADS[name][0](first + n) for n in range(count * sends)]
    return [b"".join(requests[at : at + sends]) for at in range(0, count * sends, sends)]


def main() -> None:
    """Reads the arguments, and prints a table."""
    parser = argparse.ArgumentParser(description="Counts the instructions of a request in process.")
    parser.add_argument(
        "--load",
        action="append",
        choices=[*LOADS, *JOURNEYS, *CALLS, *ACCOUNTS],
        help="only this one",
    )
    parser.add_argument("--within", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.within:
        folder, loads = options.within
        _within(Path(folder), json.loads(loads))
        return
    names = options.load or [*LOADS, *JOURNEYS, *CALLS]
    try:
        counts = instructions([(name, sends) for name in names for sends in IN_A_READ])
    except NoValgrind as error:
        raise SystemExit(f"benchmarks.instructions: {error}") from None
    print(f"{'instructions a request':<32}  1 in a read / 32")
    for name in names:
        one, many = (counts[name, sends] for sends in IN_A_READ)
        print(f"{name:<32}  {one:>10,.0f} / {many:>7,.0f}")


if __name__ == "__main__":
    main()
