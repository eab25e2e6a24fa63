# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from txrocketmq.spark.ingest.stages import VARIABLE, Stage, reached


def test_nothing_happens_unless_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    reached(Stage.COMMITTED)


def test_other_stages_are_passed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, f"committed:{tmp_path / 'here'}")
    reached(Stage.PLANNED)
    assert not (tmp_path / "here").exists()


def test_only_the_first_one_stands_still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    monkeypatch.setenv(VARIABLE, f"committed:{tmp_path / 'here'}")
    reached(Stage.COMMITTED)


def test_the_first_one_stands_still_until_it_is_killed(tmp_path: Path) -> None:
    program = (
        "from txrocketmq.spark.ingest.stages import Stage, reached\n"
        "reached(Stage.PLANNED); print('went on')"
    )
    environment = {VARIABLE: f"planned:{tmp_path / 'here'}"}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE
    ) as process:
        while not (tmp_path / "here").exists():
            assert process.poll() is None
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == b""
