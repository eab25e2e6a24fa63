# SPDX-License-Identifier: Apache-2.0
"""The meters read this very process."""

import os
import time

from benchmarks import proc


def test_cpu_time_grows_by_what_the_process_used() -> None:
    before = proc.cpu_seconds(os.getpid())
    used = time.process_time()
    while time.process_time() - used < 0.1:
        pass
    assert 0.05 < proc.cpu_seconds(os.getpid()) - before < 1.0


def test_anonymous_memory_holds_what_was_allocated() -> None:
    before = proc.anonymous_bytes(os.getpid())
    held = bytearray(os.urandom(32 << 20))
    grown = proc.anonymous_bytes(os.getpid()) - before
    assert grown > 24 << 20
    assert len(held) == 32 << 20


def test_the_machine_used_at_least_what_we_did() -> None:
    assert proc.machine_cpu_seconds() > time.process_time()
