# SPDX-License-Identifier: Apache-2.0
"""Lines of a report about requests and those beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.beside.fields import Asked
from tests.beside.probe import LIMIT_MS, Seen

PEERS = 100


def printed(asked: Asked, measured: Callable[[Asked, int], Seen]) -> None:
    """Prints what a probe has seen beside one peer, and beside many."""
    for peers in (1, PEERS):
        seen = measured(asked, peers)
        lost = f", {seen.lost} lost" if seen.lost else ""
        late = "  LATE" if seen.worst_ms > LIMIT_MS else ""
        sys.stdout.write(
            f"{asked.name:48} {peers:3} peers {seen.worst_ms:7.1f} ms of {seen.all_ms:8.0f}"
            f" {seen.probes:5} probes, {seen.came}/{seen.wanted} answers{lost}{late}\n"
        )
        sys.stdout.flush()
