# SPDX-License-Identifier: Apache-2.0
"""Limits what failures print.

Where tests run unattended (CI is set), pytest cuts nothing: two long lists that differ give
thousands of lines, in the report and again in the summary. A conftest puts this hook into effect
with `register`.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from typing import Final

import pytest

NAME: Final = "failures"
MAX_LINES: Final = 60
"""The most lines of an assertion's text."""
MAX_SUMMARY_LINES: Final = 10
"""The most lines of a failure in the summary."""
MAX_COLUMNS: Final = 400


def register(config: pytest.Config) -> None:
    """Puts the hook into effect once, whichever conftest comes first."""
    if not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(sys.modules[__name__], NAME)


def bounded(lines: Sequence[str], most: int, margin: str = "") -> list[str]:
    """Returns so many lines, without those in the middle, and with long lines cut."""
    left = len(lines) - most
    if left > 0:
        head = most * 3 // 4
        said = f"{margin}[... {left} lines ...]"
        lines = [*lines[:head], said, *lines[head + left :]]
    return [
        line if len(line) <= MAX_COLUMNS else f"{line[:MAX_COLUMNS]} [... {len(line)} characters]"
        for line in lines
    ]


def _is_all_wanted(config: pytest.Config) -> bool:
    return config.get_verbosity(pytest.Config.VERBOSITY_ASSERTIONS) > 1  # with -vv


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _is_all_wanted(item.config):
        return report
    if isinstance(report.longrepr, str):
        report.longrepr = "\n".join(bounded(report.longrepr.splitlines(), MAX_LINES))
    for traceback, crash, _ in getattr(report.longrepr, "chain", ()):
        for entry in traceback.reprentries:
            lines = entry.lines
            begin = next((at for at, line in enumerate(lines) if line[:4] == "E   "), len(lines))
            entry.lines = [*lines[:begin], *bounded(lines[begin:], MAX_LINES, "E   ")]
        if crash is not None:
            crash.message = "\n".join(bounded(crash.message.splitlines(), MAX_SUMMARY_LINES))
    return report
