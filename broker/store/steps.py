# SPDX-License-Identifier: Apache-2.0
"""Steps: what may take long, cut into pieces between which others come first."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A generator that pauses after each small step and returns a T.

What it looks at may change while it pauses.
"""


def finished(steps: Steps[T]) -> T:
    """Takes all steps at once: for tests and for tools that nobody waits for."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
