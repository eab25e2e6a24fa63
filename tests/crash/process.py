# SPDX-License-Identifier: Apache-2.0
"""A process that lives one life of a store on the real file system, until somebody kills it.

    python -m tests.crash.process ROOT LEDGER SEED LIFE FLUSH EXT

It judges what it finds first, then does what chance says. A line on its output tells of each step.
In half of the lives it kills itself, at a call of a function that chance has chosen, so that the
seed repeats the round; in the others it goes on until it is killed from outside.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from random import Random

from tests.crash.calls import at_call
from tests.crash.ledger import Ledger, Shape
from tests.crash.life import TINY, Life
from tests.disk import NOW_MS
from txrocketmq.broker.store.formats.config import StoreConfig

_LIFE_MS = 100_000_000
_CLOCK_STEPS_MS = (0, 0, -3_600_000, 3_600_000)


def main(root: str, ledger_path: str, *arguments: str) -> None:
    """Lives one life; does not return."""
    seed, life_number = map(int, arguments[:2])
    flush, ext = arguments[2:]
    os.fdatasync = os.fstat  # type: ignore[assignment]  # no power fails here: what is written stays
    os.fsync = os.fstat  # type: ignore[assignment]
    random = Random(f"{seed} {life_number}")
    ledger = Ledger.read(Shape(seed), Path(ledger_path))
    config = StoreConfig(
        store_path_root_dir=root,
        flush_disk_type=flush,
        enable_consume_queue_ext=ext == "ext",
        **TINY,
    )
    life = Life(config, ledger, NOW_MS + life_number * _LIFE_MS)
    kills_itself = random.random() < 0.5
    number = random.randrange(1, 60_000) if kills_itself else 0
    with at_call(number, lambda: os.kill(os.getpid(), signal.SIGKILL)) if number else nullcontext():
        life.start()
        life.judge()
        sys.stdout.write("judged\n")
        for step in range(1 << 30):
            if step == 50:
                life.set_clock(random.choice(_CLOCK_STEPS_MS))
            life.step(random)
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
