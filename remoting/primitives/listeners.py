# SPDX-License-Identifier: Apache-2.0
"""Those who wait to be told something: one of them that fails keeps it from nobody else."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable


def each_told(
    listeners: Iterable[Callable[..., object]], *news: object
) -> Generator[None, None, None]:
    """Calls one listener after another, and pauses after each.

    What one of them raises is raised when all have been called. If several do, it is the first.
    """
    failed: Exception | None = None
    for listener in listeners:
        try:
            listener(*news)
        except Exception as error:  # noqa: BLE001 - it is raised below
            failed = failed or error
        yield
    if failed is not None:
        raise failed


def tell_all(listeners: Iterable[Callable[..., object]], *news: object) -> None:
    """Does the same as `each_told` without a pause."""
    for _ in each_told(listeners, *news):
        pass
