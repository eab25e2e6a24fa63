# SPDX-License-Identifier: Apache-2.0
"""How parts of the broker have work done in a thread without knowing any: by an InThread.

The service gives them Threads.run; without a service, `at_once` does the work where it is.
"""

from __future__ import annotations

from collections.abc import Callable

Work = Callable[[], None]
Done = Callable[[Exception | None], None]
InThread = Callable[[Work, Done], None]
"""Runs the first function in a thread, and then calls the second one in the caller's thread with
the exception that the first one raised, or None."""


def at_once(work: Work, done: Done) -> None:
    """An InThread that does the work at once, for users without threads."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - it is handed to whoever asked
        done(error)
    else:
        done(None)
