# SPDX-License-Identifier: Apache-2.0
"""Reports at the end of a program which objects were started and never shut down, one line each."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import TextIO

_open: dict[int, tuple[object, int, str, Callable[[], None]]] = {}
"""By identity, which stays an item's own only as long as the item is kept."""


def opened(item: object, what: str, end: Callable[[], None]) -> None:
    """It has been started; `end` is called when the program ends before it was shut down."""
    _open[id(item)] = (item, os.getpid(), what, end)


def closed(item: object) -> None:
    """It has been shut down, or never was."""
    _open.pop(id(item), None)


def end_all(errors: TextIO | None = None) -> None:
    """Says what is still open, and ends it; what a parent process has open is left alone."""
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
