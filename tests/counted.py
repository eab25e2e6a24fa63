# SPDX-License-Identifier: Apache-2.0
"""Measures work by the lines of Python that run, which is the same on every machine."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_of(call: Callable[[], object], where: Counter[str] | None = None) -> int:
    """How many lines of Python a call runs, without those of objects that are collected meanwhile.

    `where` counts them by function.

    A collection may come at any time, and then runs what other tests have left: an error that
    nobody looked at, which Twisted logs, or a client that nobody closed.
    """
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if where is not None:
                where[f"{frame.f_code.co_filename}: {frame.f_code.co_qualname}"] += 1
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
