# SPDX-License-Identifier: Apache-2.0
"""Measures work by the lines of Python that run, which is the same on every machine."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple


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


class Work(NamedTuple):
    """What a call takes: operations of the interpreter, and functions of C that it calls."""

    operations: float
    calls: float

    def less(self, other: Work) -> Work:
        """What it takes more than another call."""
        return Work(self.operations - other.operations, self.calls - other.calls)


def work_of(
    calls: Sequence[Callable[[], object]], count: int, where: Counter[str] | None = None
) -> Work:
    """Returns what one of `count` things takes that are done in calls, which must be able to recur.

    A specialized operation counts as one, as any other. `where` counts them by function.
    """
    operations = functions = 0

    def seen(frame: FrameType, event: str, _: object) -> Any:
        nonlocal operations
        if event == "opcode":
            operations += 1
            if where is not None:
                where[f"{frame.f_code.co_filename}: {frame.f_code.co_qualname}"] += 1
        return seen

    def called(frame: FrameType, _: str, __: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return seen

    def heard(_: FrameType, event: str, __: object) -> None:
        nonlocal functions
        functions += event == "c_call"

    traced, profiled, collects = sys.gettrace(), sys.getprofile(), gc.isenabled()
    gc.disable()
    try:
        sys.settrace(called)
        for each in calls:
            each()
        sys.settrace(traced)
        sys.setprofile(heard)
        for each in calls:
            each()
    finally:
        sys.settrace(traced)
        sys.setprofile(profiled)
        if collects:
            gc.enable()
    return Work(operations / count, functions / count)
