# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed while they store messages; the next one goes on in the same store.

No sync is needed for that: what was copied into a mapped file belongs to the system.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.crash.ledger import Ledger, Shape
from tests.crash.life import TINY, Life
from tests.crash.rounds import Round
from tests.disk import NOW_MS
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH, StoreConfig

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_STEPS = 150


class Store(NamedTuple):
    """A store on the real file system, with its ledger beside it."""

    folder: Path
    seed: int
    flush: str
    ext: str

    @property
    def ledger(self) -> Ledger:
        return Ledger.read(Shape(self.seed), self.folder / "ledger")

    def run(self, life: int, steps: int) -> None:
        """One life, which is killed after so many steps unless it ends itself before."""
        arguments = [str(self.folder / "store"), str(self.folder / "ledger"), str(self.seed)]
        command = [sys.executable, "-m", "tests.crash.process", *arguments, str(life), self.flush]
        with subprocess.Popen(
            [*command, self.ext], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for _ in range(steps):
                if not process.stdout.readline():
                    break
            process.kill()
            process.stdout.read()
            complaint = process.stderr.read().decode()
        assert process.returncode == -9, f"life {life} of seed {self.seed}: {complaint[-3000:]}"

    def open(self, life: int) -> Life:
        """A life in this process."""
        config = StoreConfig(
            store_path_root_dir=str(self.folder / "store"),
            flush_disk_type=self.flush,
            enable_consume_queue_ext=self.ext == "ext",
            **TINY,
        )
        return Life(config, self.ledger, NOW_MS + life * 100_000_000)


@pytest.mark.share(0.4)
def test_one_life_after_the_other(crash_round: Round, tmp_path: Path) -> None:
    random = crash_round.random
    flush, ext = random.choice((SYNC_FLUSH, ASYNC_FLUSH)), random.choice(("ext", "plain"))
    store = Store(tmp_path, crash_round.seed, flush, ext)
    lives = random.randint(1, 4)
    for life in range(lives):
        store.run(life, random.randrange(1, MOST_STEPS))
    last = store.open(lives)
    last.start()
    crash_round.judge(last.judge, last.said)
    assert not last.recovered or not last.recovered.was_closed
    go_on(last, random)
    again = store.open(lives + 1)
    again.start()
    crash_round.judge(again.judge, again.said)
    assert not again.said
    again.stop()
    assert not (tmp_path / "store" / "abort").exists()
    crash_round.acknowledged(again.ledger)
    again.ledger.close()


def go_on(life: Life, random: Random) -> None:
    """Work and an orderly end after all the kills."""
    for _ in range(10):
        life.step(random)
    life.flush()
    life.judge()
    life.stop()
    life.ledger.close()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    store = Store(tmp_path, 1, ASYNC_FLUSH, "plain")
    for life in range(3):
        store.run(life, 2)
    last = store.open(3)
    last.start()
    last.stop()
