# SPDX-License-Identifier: Apache-2.0
"""Whether a task belongs to the execution that planned it, or to a later one of the same plan.

Spark plans a load once. When its DataFrame or view is used again, Spark runs the same partitions
with the same pickled reader and does not call Python on the driver. So only a task can find out
that its plan is old. Spark gives each execution an id, a UUID of version 7, which begins with the
time at which it was made: that of the frame when the frame is used for the first time, else that
of the execution. It is made before the plan of a first execution, on the machine and by the clock
by which the plan has its time. So an id that is younger than the plan is of a later execution. An
older one is of the first execution, or of a frame that was made before it and is used only now; so
a plan counts as old after a few minutes in any case.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final
from uuid import UUID

_EXECUTION_ID: Final = "spark.sql.execution.query.id"
_UUID_OF_TIME: Final = 7
_YOUNG_MS: Final = 600_000
"""How long a plan can be that of the present execution if its id does not say otherwise."""


def now_ms() -> int:
    """Returns the time that a plan is to remember, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def is_later(planned_ms: int) -> bool:
    """Returns whether this task belongs to a later execution than the one that made its plan.

    Outside of Spark, plans are used once. Where Spark does not say when the execution began, as for
    RDDs and in older versions, the answer is yes.
    """
    context = _task_context()
    if context is None:
        return False
    if now_ms() - planned_ms > _YOUNG_MS:
        return True
    try:
        identity = UUID(context.getLocalProperty(_EXECUTION_ID) or "")
    except ValueError:
        return True
    return identity.version != _UUID_OF_TIME or identity.int >> 80 > planned_ms


def _task_context() -> Any:
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.TaskContext.get()
