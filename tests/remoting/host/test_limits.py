# SPDX-License-Identifier: Apache-2.0
"""The limit of open files, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from txrocketmq.remoting.host.limits import reserved_files

PROGRAM = """
import resource
from txrocketmq.remoting.host.limits import WANTED_FILES, raise_file_limit
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


@pytest.mark.parametrize("soft", [128, 512])
def test_it_is_no_more_than_the_reactor_can_watch(soft: int) -> None:
    program = PROGRAM.format(soft=soft, hard=512).replace("limit()", "limit(256)")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "256 (256, 512)\n"


@pytest.mark.parametrize(
    ("limit", "reserved"), [(64, 32), (256, 64), (1_024, 256), (4_096, 1_024), (655_350, 1_024)]
)
def test_a_quarter_is_kept_within_bounds(limit: int, reserved: int) -> None:
    assert reserved_files(limit) == reserved


REFUSES = """
import os, resource
from txrocketmq.remoting.host.limits import ConnectionLimit, QUIET_SWEEPS
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
limit, opened = ConnectionLimit(), []
while True:
    opened.append(os.open(os.devnull, os.O_RDONLY))
    if not limit.takes():
        break
print(opened[-1], limit.takes(), limit.refused)
print({limit.sweep() for _ in range(QUIET_SWEEPS)})
while len(opened) < 236:  # the store opens files, of its reserve too
    opened.append(os.open(os.devnull, os.O_RDONLY))
print(limit.takes(), limit.refused)
print({limit.sweep() for _ in range(QUIET_SWEEPS)}, limit.sweep(), limit.sweep())
os.close(opened.pop(5))
print(limit.takes(), limit.refused)
resource.setrlimit(resource.RLIMIT_NOFILE, (8, 256))
print(limit.takes())
"""


def test_connections_are_refused_while_the_store_has_its_reserve() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFUSES], capture_output=True, text=True, check=True
    )
    first, quiet, later, over, again, without = done.stdout.splitlines()
    assert first == "191 False 2", "the one that would leave less than a quarter"
    assert quiet == "{0}"
    assert later == "False 3"
    assert over == "{0} 3 0"
    assert again == "True 0"
    assert without == "False"
