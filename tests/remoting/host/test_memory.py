# SPDX-License-Identifier: Apache-2.0
"""Settings of a process's memory, looked at in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from txrocketmq.remoting.host import memory
from txrocketmq.remoting.host.memory import MemoryReserve, Peaks, own_bytes

PROGRAM = """
import gc
from txrocketmq.remoting.host.memory import GC_THRESHOLDS, settle_memory
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


GROWTH = """
import gc
from txrocketmq.remoting.host.memory import settle_memory
settle_memory()
looked_at = []
def begun(phase, info):
    if phase == "start":
        looked_at.append(
            sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1))
        )
gc.callbacks.append(begun)
kept = [[number] for number in range(1_000_000)]
print(len(looked_at) > 50, max(looked_at))
"""


def test_nobody_waits_long_for_a_collection() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    has_grown, most = done.stdout.split()
    assert has_grown == "True"
    assert int(most) < 25_000


KEPT = """
import ctypes, gc, sys, weakref
from unittest import mock
from txrocketmq.remoting.host import memory
class Other: ...
memory.settle_memory()
gc.set_threshold(100_000, 1_000, 1_000)
old = [[number] for number in range(1_000)]
cycle = Other(); cycle.itself = cycle; gone = weakref.ref(cycle)
held = [tuple([number] * 7) for number in range(5_000)]
del held
kept = sys.getallocatedblocks()
libc = mock.Mock()
with mock.patch.object(ctypes, "CDLL", lambda _: libc):
    memory.give_back()
given_up = kept - sys.getallocatedblocks()
assert libc.mock_calls == [mock.call.malloc_trim(0)]
del cycle
gc.collect()
assert gone() is None
print(given_up, gc.get_freeze_count())
"""


def test_what_python_keeps_is_given_up_and_nothing_else_is_changed() -> None:
    """Of 5,000 tuples, Python keeps 2,000. What exists is still looked through for cycles."""
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    given_up, frozen = map(int, done.stdout.split())
    assert given_up > 1_500
    assert frozen == 0


STACK = """
import resource, sys
from txrocketmq.remoting.host import memory

def pages(of):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(of))

before = pages("VmStk:")
room = int(sys.argv[1])
if room:
    resource.setrlimit(resource.RLIMIT_AS, (pages("VmSize:") * 1024 + room, -1))
try:
    memory.grow_stack()
except MemoryError as error:
    print(error)
else:
    print(pages("VmStk:") > before)
"""


@pytest.mark.parametrize(
    ("room", "said"), [(0, "True"), (4 << 20, "True"), (64 << 10, "the stack has no room")]
)
def test_the_stack_grows_at_the_start_if_there_is_room(room: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STACK, str(room)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{said}\n"


def test_the_reserve_is_given_once_and_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = MemoryReserve()
    assert reserve.take()
    assert reserve.take()
    assert reserve.give()
    assert reserve.is_given
    assert not reserve.give(), "it was said already"
    with monkeypatch.context() as patched:
        patched.setattr(memory, "RESERVE_BYTES", 1 << 62)
        assert not reserve.take()
    assert reserve.is_given
    assert reserve.take()
    assert not reserve.is_given


def test_memory_is_given_back_after_a_peak_and_later_if_it_was_in_use() -> None:
    mib, minute = 1 << 20, Peaks.PERIOD_MS
    own = 40 * mib
    peaks = Peaks(lambda: own)
    assert not peaks.has_passed(0)
    own = 200 * mib
    assert not peaks.has_passed(minute - 1), "not more often than once a minute"
    assert peaks.has_passed(minute)
    peaks.given_back()  # all of it was in use
    passed = []
    for number in range(2, 40):
        if peaks.has_passed(number * minute):
            passed.append(number)
            own = 60 * mib
            peaks.given_back()
    assert len(passed) == 1
    assert passed[0] < 20


def test_what_a_process_has_for_itself() -> None:
    before = own_bytes()
    block = b"x" * (64 << 20)
    assert own_bytes() - before > len(block) * 0.9
