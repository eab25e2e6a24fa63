# SPDX-License-Identifier: Apache-2.0
"""The resources that a process used, from /proc (Linux): the same for a JVM and for Python."""

import contextlib
import ctypes
import os
import resource
import subprocess
import time
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_CHILD_SUBREAPER: Final = 36
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Returns the user and system time of all threads of the process since it started."""
    # The second field is the command in parentheses and may hold spaces: count from its end.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / _TICKS_PER_SECOND


def tree_cpu_seconds(pid: int) -> float:
    """Returns the user and system time of a process, its descendants and their ended children.

    Processes that became orphans before they ended are missing.
    """
    ticks = 0
    for member in (pid, *descendants(pid)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_SECOND


class Used(NamedTuple):
    """What a command took, in seconds."""

    wall_s: float
    cpu_s: float


def run(command: list[str]) -> Used:
    """Runs a command to its end; returns what it and all processes that it started used.

    This process becomes the parent of orphans below it, so that none is missed. Raises
    CalledProcessError when the command fails.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours = set(descendants(os.getpid()))
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    wall_s = time.monotonic() - started
    for orphan in set(descendants(os.getpid())) - ours:
        with contextlib.suppress(ChildProcessError):  # a child of an orphan is not ours to wait for
            os.waitpid(orphan, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Used(wall_s, cpu_s)


def descendants(pid: int) -> list[int]:
    """Returns the processes that this one has started, and those started by them in turn."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        waiting = [child for parent in waiting for child in children.get(parent, ())]
        found += waiting
    return found


def peak_resident_bytes(pid: int) -> int:
    """Returns the most resident memory at any time (VmHWM), including shared pages."""
    return _status_bytes(pid, "VmHWM")


def resident_bytes(pid: int) -> int:
    """Returns the resident memory (VmRSS), including shared pages."""
    return _status_bytes(pid, "VmRSS")


def anonymous_bytes(pid: int) -> int:
    """Returns the resident anonymous memory (RssAnon): heap and stacks without mapped files."""
    return _status_bytes(pid, "RssAnon")


def _status_bytes(pid: int, wanted: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == wanted:
            return int(value.split()[0]) * 1024
    raise ValueError(f"/proc/{pid}/status has no {wanted} line")


def machine_cpu_seconds() -> float:
    """Returns the CPU time that all processes of this machine have used since it started."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_SECOND
