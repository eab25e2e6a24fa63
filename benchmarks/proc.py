# SPDX-License-Identifier: Apache-2.0
"""What a process used, read from /proc (Linux): the same numbers for a JVM and for Python."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of the process since it started."""
    # The second field is the command in parentheses and may hold spaces: count from its end.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / _TICKS_PER_SECOND


def anonymous_bytes(pid: int) -> int:
    """Resident anonymous memory (RssAnon): heap and stacks, without mapped store files."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "RssAnon":
            return int(value.split()[0]) * 1024
    raise ValueError(f"/proc/{pid}/status has no RssAnon line")


def machine_cpu_seconds() -> float:
    """CPU time all processes of this machine have used since it started."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_SECOND
