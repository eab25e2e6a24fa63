# SPDX-License-Identifier: Apache-2.0
"""One pool, and what needs none; commands and workers are killed in tests/engine."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import active_children

import pytest

from tests.spark.ingest.tasks import DIE, GOOD, LONG, OURS, THEIRS, WHERE
from txrocketmq.spark.arrow.errors import OptionError, RunFailed
from txrocketmq.spark.ingest.runners.process_runner import _without_interrupts, process_runner


def test_tasks_are_run_in_processes_of_their_own_that_end_together() -> None:
    with process_runner() as run:
        outcomes = dict(run([WHERE, OURS, *[GOOD] * 20]))
        assert outcomes[0].given != os.getpid()
        assert isinstance(outcomes[1].error, OptionError)
        assert [outcomes[number].given for number in range(2, 22)] == [bytes(3)] * 20
        with pytest.raises(RunFailed, match="^a task ended with ValueError: .*fromhex"):
            list(run([THEIRS, LONG]))
        assert not active_children()
        assert [given for _, (given, _) in run([GOOD])] == [bytes(3)], "with new processes"


def test_nothing_starts_without_a_task() -> None:
    with process_runner() as run:
        assert list(run([])) == []
        assert not active_children()


def test_a_worker_that_dies_is_told() -> None:
    with process_runner() as run, pytest.raises(RunFailed, match="^a worker process was killed"):
        list(run([DIE, LONG]))
    with process_runner() as run, pytest.raises(RunFailed, match="^a worker process was killed"):
        list(run([LONG, DIE]))
    assert not active_children()


def test_tasks_that_nobody_waits_for_are_ended() -> None:
    with process_runner() as run:
        for number, _ in run([GOOD, LONG]):
            assert number == 0
            break
        assert not active_children()


def test_interrupts_are_held_back_while_processes_start() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    handler = signal.getsignal(signal.SIGINT)
    with _without_interrupts():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_interrupt_comes_afterwards_whichever_thread_takes_it() -> None:
    done = []

    def take_it() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def start() -> None:
        with _without_interrupts():
            other = threading.Thread(target=take_it)
            other.start()
            other.join()
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
