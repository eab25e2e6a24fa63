# SPDX-License-Identifier: Apache-2.0
"""The number of rounds, the seed of each, and the figures of all of them.

`make crash` sets CRASH_ROUNDS and CRASH_SEED, and `make process` sets CRASH_SEED, to another one
each day. The seed of a round is in the name of its test; with that seed as SEED, and ROUNDS=1, the
round is repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tests.crash.judge import Findings, RuleBroken
from tests.crash.ledger import Ledger

CI_ROUNDS: Final = 25
ROUNDS: Final = int(os.environ.get("CRASH_ROUNDS") or CI_ROUNDS)
SEED: Final = int(os.environ.get("CRASH_SEED") or 1)
FIGURES: Final = ("rounds", "acknowledged", "served", "expired", "lost", "wrong", "warnings")
"""The figures; a message counts as served at each judgement."""


def seeds(share: float = 1.0) -> list[int]:
    """Returns the seeds of a test that takes this share of the rounds; at least one."""
    return list(range(SEED, SEED + max(round(ROUNDS * share), 1)))


class Round:
    """One round of one test, with its figures."""

    def __init__(self, seed: int, name: str) -> None:
        self.seed = seed
        self.random = Random(f"{seed} {name}")
        self.figures = dict.fromkeys(FIGURES, 0)
        self.figures["rounds"] = 1

    def judge(self, look: Callable[[], Findings], said: Sequence[str] = ()) -> None:
        """Notes the result of a judgement, and the warnings of the start before it."""
        self.figures["warnings"] += len(said)
        try:
            findings = look()
        except RuleBroken as broken:
            self.figures["lost"] += broken.lost
            self.figures["wrong"] += broken.wrong
            raise
        self.figures["served"] += len(findings.served)
        self.figures["expired"] += len(findings.missing)

    def acknowledged(self, ledger: Ledger) -> None:
        """Notes the acknowledged messages of a ledger at its end."""
        self.figures["acknowledged"] += ledger.count
