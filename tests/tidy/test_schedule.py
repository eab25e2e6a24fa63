# SPDX-License-Identifier: Apache-2.0
"""The order of the scenarios names modules that there are."""

from __future__ import annotations

import runpy
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "compat_tests"


def test_modules_in_the_schedule_exist() -> None:
    seconds = runpy.run_path(str(FOLDER / "schedule.py"))["SECONDS"]
    assert not set(seconds) - {path.stem for path in FOLDER.glob("test_*.py")}
