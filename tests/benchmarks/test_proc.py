# SPDX-License-Identifier: Apache-2.0
"""The meters read this very process."""

import os
import subprocess
import sys
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


def test_a_tree_has_what_was_started_and_what_has_ended() -> None:
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    before = proc.tree_cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert proc.tree_cpu_seconds(os.getpid()) - before >= 0.15
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in proc.descendants(os.getpid())
        child.communicate(b"\n")
    assert child.pid not in proc.descendants(os.getpid())


def test_the_peak_of_memory_stays() -> None:
    held = bytearray(os.urandom(128 << 20))
    assert len(held) == 128 << 20
    del held
    now = proc.anonymous_bytes(os.getpid())
    assert proc.peak_resident_bytes(os.getpid()) - now > 100 << 20


def test_a_command_is_charged_for_its_orphans() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}])"
    used = proc.run([sys.executable, "-c", orphan])
    assert used.cpu_s >= 0.3
    assert used.wall_s < 30
