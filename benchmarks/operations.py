# SPDX-License-Identifier: Apache-2.0
"""Counts what the interpreter does on a journey: operations, calls, and files that it goes through.

Operations of bytecode come out the same each time, however busy the machine is, but another minor
version of Python has others. A specialized one counts as one, as any other; what is done in C is
not in them. A journey is a generator that prepares something, which is not counted, and yields the
calls that are.
"""

from __future__ import annotations

import gc
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TypeVar

WARM: Final = 24
"""How often a journey is made before it is counted, so that what is learned once is known."""
COUNTED: Final = 4

_NOT_OURS: Final = re.compile(
    rf"/(twisted|zope)/|^<frozen |^{re.escape(str(Path(__file__).parent))}/"
)
"""Files whose work does not count: they may be of any version, or stand for a network."""

_KERNEL: Final = "TXROCKETMQ_KERNEL"
Call = Callable[[], object]
Server = TypeVar("Server")
Journey = Callable[[Server], Iterator[Call]]


class Cost(NamedTuple):
    """What one request or message of a journey takes."""

    operations: float
    calls: float
    """Calls of functions in Python."""
    files: int
    """Source files that the journey as a whole goes through."""


class Counting:
    """What was done while it counted, by code object."""

    def __init__(self) -> None:
        self.operations: Counter[CodeType] = Counter()
        self.calls: Counter[CodeType] = Counter()

    def count(self, call: Call) -> None:
        """Counts a call, without garbage that is collected, since others may have left it."""
        operations, calls = self.operations, self.calls

        def seen(frame: FrameType, event: str, _: object) -> Any:
            if event == "opcode":
                operations[frame.f_code] += 1
            return seen

        def called(frame: FrameType, _: str, __: object) -> Any:
            if _NOT_OURS.search(frame.f_code.co_filename):
                return None
            calls[frame.f_code] += 1
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return seen

        traced, collects = sys.gettrace(), gc.isenabled()
        gc.disable()
        sys.settrace(called)
        try:
            call()
        finally:
            sys.settrace(traced)
            if collects:
                gc.enable()

    def by_function(self) -> Counter[str]:
        """Returns the operations by the names of modules and functions."""
        named: Counter[str] = Counter()
        for code, count in self.operations.items():
            named[name_of(code)] += count
        return named


def name_of(code: CodeType) -> str:
    """Returns the file of a function, from its package on, and its name."""
    return f"{'/'.join(code.co_filename.split('/')[-3:])}: {code.co_qualname}"


@contextmanager
def reproducible() -> Iterator[None]:
    """Has chance and the clocks that measure what is done be the same each time.

    No compiled kernel serves anything, whether or not one is installed.
    """
    modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith("txrocketmq.") and "perf_counter_ns" in vars(module)
    ]
    state, kernel = random.getstate(), os.environ.get(_KERNEL)
    random.seed(0)
    os.environ[_KERNEL] = "off"
    for module in modules:
        module.perf_counter_ns = lambda: 0  # type: ignore[attr-defined]
    try:
        yield
    finally:
        random.setstate(state)
        os.environ.pop(_KERNEL)
        if kernel is not None:
            os.environ[_KERNEL] = kernel
        for module in modules:
            module.perf_counter_ns = perf_counter_ns  # type: ignore[attr-defined]


def cost_of(make: Callable[[], Iterator[Call]], weight: int, counting: Counting) -> Cost:
    """Returns what one of `weight` requests or messages takes; `counting` gets where that was."""
    for _ in range(WARM):
        for call in make():
            call()
    for _ in range(COUNTED):
        for call in make():
            counting.count(call)
    files = {code.co_filename for code in counting.calls if not code.co_filename.startswith("<")}
    times = COUNTED * weight
    operations, calls = counting.operations.total(), counting.calls.total()
    return Cost(operations / times, calls / times, len(files))
