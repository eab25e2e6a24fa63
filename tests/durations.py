# SPDX-License-Identifier: Apache-2.0
"""Prints how long each test module took, if it took long.

pytest's own `--durations` names single tests, so that a module of many short ones never shows.
What fixtures of a session or module take counts for the module whose test needed them first. A
conftest puts this hook into effect with `register`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import pytest

NAME: Final = "durations"
LONG_S: Final = 10.0
"""Modules that took less are not named."""


def register(config: pytest.Config) -> None:
    """Puts the hook into effect once, whichever conftest comes first."""
    if not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(sys.modules[__name__], NAME)


def long_modules(reports: Iterable[object]) -> list[tuple[str, float]]:
    """Returns the modules that took long, the longest first, with their seconds."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    long = [(module, taken) for module, taken in seconds.items() if taken >= LONG_S]
    return sorted(long, key=lambda each: -each[1])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints them."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    modules = long_modules(reports)
    if modules:
        terminalreporter.section(f"modules of {LONG_S:.0f} s and more")
    for module, taken in modules:
        terminalreporter.write_line(f"{taken:6.0f} s  {module}")
