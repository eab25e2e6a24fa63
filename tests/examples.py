# SPDX-License-Identifier: Apache-2.0
"""How many examples property tests draw: as the profile of the run says, for all of them alike.

    make unit                            20 each: somebody waits for them
    .ci/run, or CI=true                  PROFILES["ci"]
    pytest --hypothesis-profile thorough for whoever changes a format or a decoder
    make fuzz                            round after round of "fuzz", each with another seed

A test whose examples cost more than others' says how many of them it draws in `make unit`, and
draws as much more in the other profiles as all do:

    @settings(max_examples=examples(10))
"""

from __future__ import annotations

import os
from typing import Final

import hypothesis

USUAL: Final = 20
PROFILES: Final = {"unit": USUAL, "ci": 3 * USUAL, "thorough": 50 * USUAL, "fuzz": 25 * USUAL}
"""Examples of a test that says nothing, by profile."""


def register() -> None:
    """Declares the profiles and takes the one of this run, which the command line may change.

    A busy machine is no defect of the code: examples have no time limit of their own.
    """
    for name, count in PROFILES.items():
        hypothesis.settings.register_profile(name, deadline=None, max_examples=count)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "unit")


def examples(usual: int) -> int:
    """How many examples a test draws in the profile of this run, that draws `usual` in "unit"."""
    count: int = hypothesis.settings().max_examples
    return max(1, usual * count // USUAL)
