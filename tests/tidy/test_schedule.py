# SPDX-License-Identifier: Apache-2.0
"""The order of the scenarios names modules that there are."""

from __future__ import annotations

from pathlib import Path

from compat_tests.schedule import SECONDS

FOLDER = Path(__file__).parents[2] / "compat_tests"


def test_modules_in_the_schedule_exist() -> None:
    assert not set(SECONDS) - {path.stem for path in FOLDER.glob("test_*.py")}
