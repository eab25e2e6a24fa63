# SPDX-License-Identifier: Apache-2.0
"""Lines of a report about requests and those beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.beside.fields import Asked
from tests.beside.probe import LIMIT_MS, Seen

PEERS = 100
TRIES = 3
"""How often a row is measured that is over the limit; the report shows the worst of these."""
_FURTHER = 100_000
"""How far the numbers of requests are from those of the last try, so that they are new ones."""


def printed(asked: Asked, measured: Callable[[Asked, int], Seen]) -> None:
    """Prints what a probe has seen beside one peer, and beside many."""
    for peers in (1, PEERS):
        tries: list[Seen] = []
        while not tries or (late(tries) and len(tries) < TRIES):
            tries.append(measured(_numbered_from(asked, len(tries) * _FURTHER), peers))
        sys.stdout.write(row(asked.name, peers, tries))
        sys.stdout.flush()


def late(tries: list[Seen]) -> list[Seen]:
    """Those in which a turn, or what a probe has waited for, is over the limit."""
    return [each for each in tries if max(each.turn_ms, each.worst_ms) > LIMIT_MS]


def row(name: str, peers: int, tries: list[Seen]) -> str:
    """The line for some tries: the largest of all, and how many were late.

    LATE is a turn of the reactor that was too long. Where none was, the probe had to wait for two
    turns, or got its answer late itself.
    """
    turn_ms, worst_ms = (
        max(each.turn_ms for each in tries),
        max(each.worst_ms for each in tries),
    )
    last, lost = tries[-1], sum(each.lost for each in tries)
    text = (
        f"{name:48} {peers:3} peers {turn_ms:7.1f} ms a turn {worst_ms:7.1f} ms a probe of"
        f" {last.all_ms:8.0f} {last.probes:5} probes, {last.came}/{last.wanted} answers"
    )
    if lost:
        text += f", {lost} lost"
    if late(tries):
        too_long = sum(each.turn_ms > LIMIT_MS for each in tries)
        text += f"  {'LATE' if too_long else 'late probe'}: {len(late(tries))} of {len(tries)}"
    return text + "\n"


def _numbered_from(asked: Asked, first: int) -> Asked:
    return asked._replace(made=lambda number: asked.made(first + number))
