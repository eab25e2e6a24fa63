# SPDX-License-Identifier: Apache-2.0
"""Reports at the end of a program which objects were started and never shut down, one line each."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import TextIO

_open: dict[int, tuple[object, int, str, Callable[[], None]]] = {}
"""The open objects by identity, which is unique only as long as the object itself is kept."""


def opened(item: object, what: str, end: Callable[[], None]) -> None:
    """Notes that an object was started; `end` is called if the program ends before its shutdown."""
    _open[id(item)] = (item, os.getpid(), what, end)


def closed(item: object) -> None:
    """Notes that an object was shut down, or could not be started."""
    _open.pop(id(item), None)


def end_all(errors: TextIO | None = None) -> None:
    """Reports and ends all open objects, except those that a parent process has opened."""
    for _, pid, what, end in list(_open.values()):
        if pid != os.getpid():
            continue
        print(
            f"txrocketmq: {what} was not shut down: call shutdown(), or use it in a with statement",
            file=errors or sys.stderr,
        )
        end()
    _open.clear()


atexit.register(end_all)
