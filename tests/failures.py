# SPDX-License-Identifier: Apache-2.0
"""Limits what failures print, and shows why attempts failed that were run again.

Where tests run unattended (CI is set), pytest cuts nothing: two long lists that differ give
thousands of lines, in the report and again in the summary. And it shows only the name of an attempt
that was run again. A conftest puts these hooks into effect with `register`.
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
MAX_SECTION_LINES: Final = 40
"""The most lines of each log and output of an attempt that was run again."""
MAX_COLUMNS: Final = 400
MAX_ATTEMPTS: Final = 20
"""So many attempts are shown in full, and only the end of the others."""


def register(config: pytest.Config) -> None:
    """Puts the hooks into effect once, whichever conftest comes first."""
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints why attempts failed that were run again."""
    attempts: list[pytest.TestReport] = terminalreporter.stats.get("rerun", [])
    if attempts:
        terminalreporter.write_sep("=", "why tests were run again")
    for number, report in enumerate(attempts):
        phase = "" if report.when == "call" else f", {report.when}"
        attempt = getattr(report, "rerun", 0) + 1
        terminalreporter.write_sep("_", f"{report.nodeid}: attempt {attempt}{phase}")
        lines = report.longreprtext.splitlines()
        if number >= MAX_ATTEMPTS:
            lines = lines[-MAX_SUMMARY_LINES:]
        for line in lines:
            terminalreporter.write_line(line)
        for title, text in report.sections if number < MAX_ATTEMPTS else ():
            terminalreporter.write_sep("-", title)
            for line in bounded(text.splitlines()[-MAX_SECTION_LINES:], MAX_SECTION_LINES):
                terminalreporter.write_line(line)
