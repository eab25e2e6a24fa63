# SPDX-License-Identifier: Apache-2.0
"""Says which kernel reads the sends and pulls of this process: the compiled one, or none.

The package txrocketmq-kernel, which is optional, has it. It is used if it is installed and has the
same seam; the variable TXROCKETMQ_KERNEL can ask for `off`, with which nothing of it is imported,
or for `require`, with which a broker does not start without it. Without a kernel every send goes
the way of all requests. The reference in Python is not for servers: tests choose it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from txrocketmq.broker.kernel.pulls import ReferencePulls, pull_answer
from txrocketmq.broker.kernel.rows import ReferenceRows
from txrocketmq.broker.kernel.table import ReferenceTable
from txrocketmq.broker.store.formats.packed import PullAnswer
from txrocketmq.remoting.process.compiled_kernel import (
    SEAM,
    VARIABLE,
    installed_kernel,
    kernel_is_off,
    wanted_kernel,
)

__all__ = ["REFERENCE", "SEAM", "VARIABLE", "Kernel", "chosen_kernel", "kernel_text"]


class Kernel(NamedTuple):
    """A kernel: its name, what makes its tables, rows and pulls, and what answers these."""

    name: str
    new_table: Callable[[list[bytes], list[bytes], list[bytes], bytes], Any]
    new_rows: Callable[[], Any]
    new_pulls: Callable[[], Any]
    pull_answer: PullAnswer


REFERENCE: Final = Kernel("reference", ReferenceTable, ReferenceRows, ReferencePulls, pull_answer)


def chosen_kernel() -> Kernel | None:
    """Returns the kernel of this process; None if there is none, or if it is not wanted.

    Raises ValueError if the variable asks for one that is not there, or for something else.
    """
    module = wanted_kernel()
    return None if module is None else _kernel_of(module)


def kernel_text() -> str:
    """Returns a line for people about the kernel of this process."""
    try:
        kernel = chosen_kernel()
    except ValueError as error:
        return str(error)
    if kernel is not None:
        return kernel.name
    return "off" if kernel_is_off() else f"none, since {compiled_kernel()}"


def compiled_kernel() -> Kernel | str:
    """Returns the compiled kernel, whatever the variable says, or why there is none."""
    module = installed_kernel()
    return module if isinstance(module, str) else _kernel_of(module)


def _kernel_of(module: Any) -> Kernel:
    version = getattr(module, "__version__", "")
    return Kernel(
        f"txrocketmq-kernel {version}".strip(),
        module.Table,
        module.Rows,
        module.Pulls,
        module.pull_answer,
    )
