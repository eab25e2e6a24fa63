# SPDX-License-Identifier: Apache-2.0
"""The number of examples in property tests, according to the profile of the run.

    make unit                            20 each: somebody waits for them
    .ci/run, or CI=true                  PROFILES["ci"]
    pytest --hypothesis-profile thorough for whoever changes a format or a decoder
    make fuzz                            round after round of "fuzz", each with another seed

A test whose examples take longer than others' says how many of them it draws in `make unit`. In the
other profiles it draws more of them in the same proportion as all tests:

    @settings(max_examples=examples(10))
"""

from __future__ import annotations

import os
from typing import Final

import hypothesis

USUAL: Final = 20
PROFILES: Final = {"unit": USUAL, "ci": 3 * USUAL, "thorough": 50 * USUAL, "fuzz": 25 * USUAL}
"""The number of examples of a test that does not say one, by profile."""


def register() -> None:
    """Declares the profiles and takes the one of this run; the command line may change it.

    Examples have no time limit, since a busy machine is not a defect of the code.
    """
    for name, count in PROFILES.items():
        hypothesis.settings.register_profile(name, deadline=None, max_examples=count)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "unit")


def examples(usual: int) -> int:
    """Returns the number of examples in this profile of a test that draws `usual` in "unit"."""
    count: int = hypothesis.settings().max_examples
    return max(1, usual * count // USUAL)
