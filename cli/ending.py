# SPDX-License-Identifier: Apache-2.0
"""How commands end when they are interrupted or their reader has gone."""

from __future__ import annotations

import os
import sys
from typing import Final

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it."""


def forget_stdout() -> None:
    """Discards what is still buffered for standard output, which would fail again at the exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
