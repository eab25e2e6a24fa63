# SPDX-License-Identifier: Apache-2.0
"""Whole brokers, killed while a client sends; the next one goes on in the same store."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.crash.judge import judge
from tests.crash.ledger import Ledger, Shape
from tests.crash.rounds import Round
from tests.crash.wire import WireStore
from tests.process.conftest import Standalone
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH

SETTINGS = """
mappedFileSizeCommitLog=65536
mappedFileSizeConsumeQueue=2000
mappedFileSizeConsumeQueueExt=1024
maxHashSlotNum=100
maxIndexNum=1000
flushDiskType={flush}
enableConsumeQueueExt={ext}
"""
LIVES = 2


@pytest.mark.share(0.04)
def test_brokers_are_killed_in_turn(
    crash_round: Round, tmp_path: Path, standalone: Callable[..., Standalone]
) -> None:
    random = crash_round.random
    settings = {"flush": random.choice((SYNC_FLUSH, ASYNC_FLUSH)), "ext": random.choice("01")}
    settings["ext"] = "true" if settings["ext"] == "1" else "false"
    conf = tmp_path / "broker.conf"
    conf.write_text(SETTINGS.format(**settings))
    ledger = Ledger(Shape(crash_round.seed, topics=2, delayed=False))
    for life in range(LIVES):
        server = standalone("-c", str(conf))
        store = WireStore(server.broker)
        if life:
            crash_round.judge(partial(judge, store, ledger))
        is_last = life == LIVES - 1
        acknowledged, wanted = 0, random.randrange(20, 400)
        for _ in range(5):
            store.send(ledger, random.choice((1, 10)))
        try:
            while acknowledged < wanted:
                acknowledged += store.acknowledge(ledger)
                if store.waits < 8:
                    store.send(ledger, random.choice((1, 10)))
            if not is_last:
                server.command.signal(signal.SIGKILL)
            while store.waits:
                store.acknowledge(ledger)
        except OSError:
            assert not is_last
        if is_last:
            judge(store, ledger)
        store.close()
        server.command.signal(signal.SIGTERM if is_last else signal.SIGKILL)
        server.command.end()
    store = WireStore(standalone("-c", str(conf)).broker)
    crash_round.judge(partial(judge, store, ledger))
    crash_round.acknowledged(ledger)
    store.close()
