# SPDX-License-Identifier: Apache-2.0
"""The places at which a run may be killed, by name: where a test kills it.

`TXROCKETMQ_INGEST_STAND_STILL=<stage>:<file>` makes the first process that comes to the stage
create the file and stand still there for good, so that somebody who waits for the file can end all
processes of the run with SIGKILL at exactly this place. Whoever finds the file there passes. Unset,
as always but in tests, a stage is one comparison.
"""

from __future__ import annotations

import enum
import os
import signal
from typing import Final

VARIABLE: Final = "TXROCKETMQ_INGEST_STAND_STILL"


class Stage(enum.Enum):
    """In the order of a run."""

    BEFORE_PLAN = "before-plan"
    PLANNED = "planned"
    PART_HALF_WRITTEN = "part-half-written"
    PARTS_WRITTEN = "parts-written"
    ONE_PART_IN_PLACE = "one-part-in-place"
    PARTS_IN_PLACE = "parts-in-place"
    SPLIT_DONE = "split-done"
    BEFORE_COMMIT = "before-commit"
    COMMITTED = "committed"
    HALF_SWEPT = "half-swept"


def reached(stage: Stage) -> None:
    """Says that the process is at a stage; returns unless it is told to stand still there."""
    wanted, _, file = os.environ.get(VARIABLE, "").partition(":")
    if wanted == stage.value:
        _stand_still(file)


def _stand_still(file: str) -> None:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return
    while True:
        signal.pause()
