# SPDX-License-Identifier: Apache-2.0
"""Measures work by the lines of Python that run, which is the same on every machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_of(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs, without those of objects that are collected meanwhile.

    A collection may come at any time, and then runs what other tests have left: an error that
    nobody looked at, which Twisted logs, or a client that nobody closed.
    """
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
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
