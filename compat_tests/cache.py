# SPDX-License-Identifier: Apache-2.0
"""The folder for what tests fetch or build once, and locks for filling it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def cache_root() -> Path:
    """Returns the folder for everything that is fetched or built once: ``$TXROCKETMQ_CACHE``."""
    configured = os.environ.get("TXROCKETMQ_CACHE")
    root = Path(configured) if configured else Path.home() / ".cache" / "txrocketmq"
    root.mkdir(parents=True, exist_ok=True)
    return root


@contextlib.contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Holds the lock with this name; other workers and other test runs wait for it."""
    folder = cache_root() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
