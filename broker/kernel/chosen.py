# SPDX-License-Identifier: Apache-2.0
"""Says which kernel reads the sends of this process: the compiled one, or none.

The package txrocketmq-kernel, which is optional, has it. It is used if it is installed and has the
same seam; the variable TXROCKETMQ_KERNEL can ask for `off`, with which nothing of it is imported,
or for `require`, with which a broker does not start without it. Without a kernel every send goes
the way of all requests. The reference in Python is not for servers: tests choose it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from txrocketmq.broker.kernel.rows import ReferenceRows
from txrocketmq.broker.kernel.table import ReferenceTable

SEAM: Final = 1
"""The number of the seam: what a kernel's classes are called with. It changes when they do."""
VARIABLE: Final = "TXROCKETMQ_KERNEL"
WORDS: Final = ("off", "require")
_MODULE: Final = "txrocketmq_kernel"


class Kernel(NamedTuple):
    """A kernel: what it is called, and what makes its tables and its rows."""

    name: str
    new_table: Callable[[list[bytes], list[bytes], bytes], Any]
    new_rows: Callable[[], Any]


REFERENCE: Final = Kernel("reference", ReferenceTable, ReferenceRows)


def chosen_kernel() -> Kernel | None:
    """Returns the kernel of this process; None if there is none, or if it is not wanted.

    Raises ValueError if the variable asks for one that is not there, or for something else.
    """
    word = os.environ.get(VARIABLE, "").strip().lower()
    if word and word not in WORDS:
        raise ValueError(
            f"{VARIABLE} is {word!r}, but it can only be off or require; without it, the compiled"
            " kernel is used if it is installed"
        )
    if word == "off":
        return None
    found = compiled_kernel()
    if word == "require" and isinstance(found, str):
        raise ValueError(
            f"{VARIABLE} is require, but {found}: install the package txrocketmq-kernel of this"
            " version, or remove the variable"
        )
    return None if isinstance(found, str) else found


def kernel_text() -> str:
    """Returns a line for people about the kernel of this process."""
    try:
        kernel = chosen_kernel()
    except ValueError as error:
        return str(error)
    if kernel is not None:
        return kernel.name
    found = compiled_kernel() if os.environ.get(VARIABLE, "").strip().lower() != "off" else "off"
    return f"none, since {found}" if isinstance(found, str) and found != "off" else "off"


def compiled_kernel() -> Kernel | str:
    """Returns the compiled kernel, whatever the variable says, or why there is none."""
    try:
        module = import_module(_MODULE)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == _MODULE:
            return "the compiled kernel is not installed"
        return f"the compiled kernel cannot be loaded: {error}"
    seam = getattr(module, "SEAM", None)
    if seam != SEAM:
        return f"the compiled kernel has the seam {seam}, not {SEAM}"
    version = getattr(module, "__version__", "")
    return Kernel(f"txrocketmq-kernel {version}".strip(), module.Table, module.Rows)
