# SPDX-License-Identifier: Apache-2.0
"""The compiled kernel of this process, if there is one: the package txrocketmq-kernel.

It does a part of the work of brokers and readers faster; without it everything is done in Python,
with the same results. It is used if it is installed and has the seam that this release knows. The
variable TXROCKETMQ_KERNEL can ask for `off`, with which nothing of it is imported, or for
`require`, with which a process does not start without it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

SEAM: Final = 1
"""The number of the seam: what the kernel is called with. It changes when that changes."""
VARIABLE: Final = "TXROCKETMQ_KERNEL"
OFF: Final = "off"
REQUIRE: Final = "require"
_MODULE: Final = "txrocketmq_kernel"


def compiled_kernel() -> Any:
    """Returns the module of the kernel; None if there is none, or if it is not wanted.

    Raises ValueError if the variable asks for one that is not there, or for something else.
    """
    found = _found(os.environ.get(VARIABLE, "").strip().lower())
    return None if isinstance(found, str) else found


def why_no_kernel() -> str:
    """Says in a few words why there is no kernel; empty if there is one. Raises as above."""
    found = _found(os.environ.get(VARIABLE, "").strip().lower())
    return found if isinstance(found, str) else ""


@lru_cache(maxsize=4)
def _found(word: str) -> Any:
    if word not in {"", OFF, REQUIRE}:
        raise ValueError(
            f"{VARIABLE} is {word!r}, but it can only be off or require; without it, the compiled"
            " kernel is used if it is installed"
        )
    if word == OFF:
        return f"{VARIABLE} is {OFF}"
    found = _imported()
    if word == REQUIRE and isinstance(found, str):
        raise ValueError(
            f"{VARIABLE} is require, but {found}: install the package txrocketmq-kernel of this"
            " release, or remove the variable"
        )
    return found


def _imported() -> Any:
    """Returns the module, or why it cannot be used."""
    try:
        module = import_module(_MODULE)
    except ModuleNotFoundError as error:
        if error.name == _MODULE:
            return "the compiled kernel is not installed"
        return f"the compiled kernel cannot be loaded: {error}"
    except ImportError as error:
        return f"the compiled kernel cannot be loaded: {error}"
    seam = getattr(module, "SEAM", None)
    if seam != SEAM:
        return f"the compiled kernel has the seam {seam}, and this release knows {SEAM}"
    return module
