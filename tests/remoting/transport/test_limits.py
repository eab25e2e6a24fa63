# SPDX-License-Identifier: Apache-2.0
"""The limit of open files, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from txrocketmq.remoting.transport.limits import WANTED_FILES, raise_file_limit
soft, hard = {soft}, {hard}
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(raise_file_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(128, 512), (512, 512)])
def test_the_soft_limit_becomes_the_hard_one(soft: int, hard: int) -> None:
    program = PROGRAM.format(soft=soft, hard=hard)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{hard} ({hard}, {hard})\n"
