# SPDX-License-Identifier: Apache-2.0
"""Local time, for tests that depend on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Local time is that of this zone; afterwards it is as it was, for the tests that follow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        yield
    time.tzset()
