# SPDX-License-Identifier: Apache-2.0
"""What a command prints when the process cannot get the memory that it needs.

Besides MemoryError there is the ImportError of an extension module that could not be mapped, and
the SystemError of one that forgot to say why it failed. This module imports next to nothing, so
that it can be loaded when little else can.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NO_MEMORY: Final = ("Cannot allocate memory", "failed to map segment")
"""What the dynamic loader says if there is no memory."""
_UNSAID: Final = "error return without exception set"
"""What the interpreter says of a C extension that failed without saying why."""

_RESERVE_BYTES: Final = 2 << 20
"""Address space that is kept for the way out: to raise SystemExit takes memory, too. It is never
written to, so that it takes no memory of the machine: bytes are zeros of the system's, while a
bytearray is filled with its own."""


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an error means that there was no memory, or no address space."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError):
        return any(text in str(error) for text in _NO_MEMORY)
    if isinstance(error, SystemError):
        return _UNSAID in str(error)
    return isinstance(error, MemoryError)


@contextmanager
def ends_without_memory(name: str) -> Iterator[None]:
    """Ends the process with exit code 1 and one sentence if memory runs out in the `with` block."""
    reserve = []
    try:
        reserve.append(bytes(_RESERVE_BYTES))
        yield
    except (MemoryError, ImportError, OSError, SystemError) as error:
        reserve.clear()
        if not is_out_of_memory(error):
            raise
        del error  # and what its traceback holds, which may be most of the memory
    else:
        return
    sys.stderr.write(
        f"{name}: there is not enough memory. Allow the process more address space"
        " (ulimit -v, or the limit of its service or container)\n"
    )
    raise SystemExit(1)
