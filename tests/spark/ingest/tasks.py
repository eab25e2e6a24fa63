# SPDX-License-Identifier: Apache-2.0
"""Tasks that do very little, for tests of what runs tasks.

Workers cannot import modules of tests, so these tasks are functions of libraries.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

from txrocketmq.spark.ingest.runners.runner import Task
from txrocketmq.spark.store.files import files_of

GOOD: Task = partial(bytes, 3)
OURS: Any = partial(files_of, "ftp://host/x")
THEIRS: Task = partial(bytes.fromhex, "?")
WHERE: Any = os.getpid
DIE: Any = os.abort
LONG: Any = partial(time.sleep, 600)
