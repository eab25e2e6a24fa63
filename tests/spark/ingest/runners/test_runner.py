# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.spark.ingest.tasks import GOOD, OURS, THEIRS
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.ingest.runners.runner import run_here


def test_outcomes_are_in_the_order_of_the_tasks() -> None:
    (_, given), (last, failed) = run_here([GOOD, OURS])
    assert last == 1
    assert given.given == bytes(3)
    assert given.error is None
    assert failed.given is None
    assert isinstance(failed.error, OptionError)
    assert given.result() == bytes(3)
    with pytest.raises(OptionError):
        failed.result()


def test_other_errors_are_left_to_who_runs_the_tasks() -> None:
    with pytest.raises(ValueError, match="fromhex"):
        list(run_here([THEIRS]))
