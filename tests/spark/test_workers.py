# SPDX-License-Identifier: Apache-2.0
"""The question to workers; tests/engine/test_batch.py asks real ones."""

from __future__ import annotations

import json
import subprocess
import sys

from pyspark import cloudpickle

from txrocketmq.spark import workers
from txrocketmq.spark.options.needs import ALSO, LEAST
from txrocketmq.spark.workers import asked, lacking

ALL = ["txrocketmq", *LEAST, *ALSO]


def test_the_answer_of_a_worker_that_has_all() -> None:
    _, python, found = json.loads(asked(ALL)(0))
    assert python == sys.executable
    assert sorted(found) == sorted(ALL)
    assert lacking(found) == []


def test_the_question_needs_nothing_of_ours_there() -> None:
    cloudpickle.register_pickle_by_value(workers)  # type: ignore[no-untyped-call]
    try:
        packed = cloudpickle.dumps(  # type: ignore[no-untyped-call]
            asked(["txrocketmq", "numpy"])
        )
    finally:
        cloudpickle.unregister_pickle_by_value(workers)  # type: ignore[no-untyped-call]
    program = (
        "import sys; sys.modules['txrocketmq'] = None; from pyspark import cloudpickle;"
        f"print(cloudpickle.loads({packed!r})(0)); print([m for m in sys.modules if 'numpy' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout.splitlines()[0])[1] == sys.executable


def test_what_a_worker_lacks() -> None:
    found = json.loads(asked(ALL)(0))[2]
    assert lacking({**found, "numpy": "1.26.4"}) == ["numpy 1.26.4 instead of 2.0 or later"]
    assert lacking({**found, "txrocketmq": "unknown"}) == []
    assert lacking({**found, "txrocketmq": "0.0.1"})[0].startswith("txrocketmq 0.0.1, but the driv")
    assert lacking({})[:2] == ["no txrocketmq", "no numpy"]
