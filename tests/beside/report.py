# SPDX-License-Identifier: Apache-2.0
"""Lines of a report about requests and those beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.beside.fields import Asked
from tests.beside.probe import LIMIT_MS, Seen

PEERS = 100
TRIES = 3
"""How often a row is measured that is over the limit: a turn that is long is so each time."""
_FURTHER = 100_000
"""How far the numbers of requests are from those of the last try, so that they are new ones."""


def printed(asked: Asked, measured: Callable[[Asked, int], Seen]) -> None:
    """Prints what a probe has seen beside one peer, and beside many."""
    for peers in (1, PEERS):
        for attempt in range(TRIES):
            seen = measured(_numbered_from(asked, attempt * _FURTHER), peers)
            if seen.worst_ms <= LIMIT_MS:
                break
        again = f", tried {attempt + 1} times" if attempt else ""
        lost = f", {seen.lost} lost{again}" if seen.lost else again
        late = "  LATE" if seen.worst_ms > LIMIT_MS else ""
        sys.stdout.write(
            f"{asked.name:48} {peers:3} peers {seen.worst_ms:7.1f} ms of {seen.all_ms:8.0f}"
            f" {seen.probes:5} probes, {seen.came}/{seen.wanted} answers{lost}{late}\n"
        )
        sys.stdout.flush()


def _numbered_from(asked: Asked, first: int) -> Asked:
    return asked._replace(made=lambda number: asked.made(first + number))
