# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from txrocketmq.spark.planning import execution
from txrocketmq.spark.planning.execution import is_later


@dataclass
class Task:
    id: str | None

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's
        return self.id if name == "spark.sql.execution.query.id" else None


def _id_of(ms: int) -> str:
    return str(UUID(int=ms << 80 | 7 << 76 | 2 << 62 | 12345))


@pytest.mark.parametrize(
    ("task", "later"),
    [
        (None, False),
        (Task(_id_of(999)), False),
        (Task(_id_of(1000)), False),
        (Task(_id_of(1001)), True),
        (Task(None), True),
        (Task("5"), True),
        (Task(str(uuid4())), True),
    ],
)
def test_the_execution_that_planned_is_known_by_its_time(
    task: Task | None, later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_task_context", lambda: task)
    monkeypatch.setattr(execution, "now_ms", lambda: 600_000)
    assert is_later(1000) == later
    monkeypatch.setattr(execution, "now_ms", lambda: 601_001)
    assert is_later(1000) == (task is not None), "of a frame that was made long ago"


def test_outside_of_a_task_nothing_is_later() -> None:
    assert not is_later(0)
