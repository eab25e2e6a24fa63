# SPDX-License-Identifier: Apache-2.0
"""Settings of a process's memory, looked at in a process of its own."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from txrocketmq.remoting.transport.memory import GC_THRESHOLDS, settle_memory
held = [[number] for number in range(1000)]
settle_memory()
assert gc.get_threshold() == GC_THRESHOLDS
assert gc.get_freeze_count() >= len(held)
del held
print("settled")
"""


def test_what_is_loaded_is_not_looked_through_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout == "settled\n"
