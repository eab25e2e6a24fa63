# SPDX-License-Identifier: Apache-2.0
"""The compiled kernel of this process, if there is one: the package txrocketmq-kernel.

It does a part of the work of brokers and readers faster; without it everything is done in Python,
with the same results. It is used if it is installed and has the seam that this release knows. The
variable TXROCKETMQ_KERNEL can ask for `off`, with which nothing of it is imported, or for
`require`, with which a broker does not start without it.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

SEAM: Final = 6
"""The number of the seam: what the kernel is called with. It changes when that changes."""
VARIABLE: Final = "TXROCKETMQ_KERNEL"
_OFF: Final = "off"
_REQUIRE: Final = "require"
_MODULE: Final = "txrocketmq_kernel"


def wanted_kernel() -> Any:
    """Returns the module of the kernel; None if there is none, or if it is off.

    Raises ValueError if the variable asks for one that is not there, or for something else.
    """
    word = _word()
    if word not in {"", _OFF, _REQUIRE}:
        raise ValueError(
            f"{VARIABLE} is {word!r}, but it can only be off or require; without it, the compiled"
            " kernel is used if it is installed"
        )
    if word == _OFF:
        return None
    found = installed_kernel()
    if word == _REQUIRE and isinstance(found, str):
        raise ValueError(
            f"{VARIABLE} is require, but {found}: install the package txrocketmq-kernel of this"
            " version, or remove the variable"
        )
    return None if isinstance(found, str) else found


def kernel_is_off() -> bool:
    """Whether the variable says so."""
    return _word() == _OFF


def installed_kernel() -> Any:
    """Returns the module, whatever the variable says, or a text on why it cannot be used."""
    try:
        module = import_module(_MODULE)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == _MODULE:
            return "the compiled kernel is not installed"
        return f"the compiled kernel cannot be loaded: {error}"
    seam = getattr(module, "SEAM", None)
    if seam != SEAM:
        return f"the compiled kernel has the seam {seam}, not {SEAM}"
    return module


def _word() -> str:
    return os.environ.get(VARIABLE, "").strip().lower()
