# SPDX-License-Identifier: Apache-2.0
"""What the campaign shares: rounds with their seeds, tests known to fail, the figures."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.crash.known import KNOWN
from tests.crash.rounds import CI_ROUNDS, FIGURES, ROUNDS, SEED, Round, seeds
from tests.process.conftest import standalone, txrocketmq

__all__ = ["standalone", "txrocketmq"]
_FIGURES = "crash"


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark of tests that take only a part of the rounds."""
    config.addinivalue_line("markers", "share(part): how much of the rounds a test takes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that asks for a round once for each round."""
    if "crash_round" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("share")
        share = 1.0 if mark is None else float(mark.args[0])
        chosen = seeds(share)
        metafunc.parametrize("crash_round", chosen, indirect=True, ids=[f"seed{n}" for n in chosen])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that are known to fail; see pytest_sessionfinish for those that pass."""
    for item in items:
        for pattern, reason in KNOWN.items():
            if _stands_for(pattern, item.nodeid):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))


@pytest.fixture
def crash_round(request: pytest.FixtureRequest) -> Round:
    """One round, whose figures go into the summary."""
    one = Round(request.param, request.node.originalname)
    request.node.user_properties.append((_FIGURES, one.figures))
    return one


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the figures of each test, and of all tests."""
    sums: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "xfailed", "xpassed"):
        for report in terminalreporter.getreports(outcome):
            figures = dict(getattr(report, "user_properties", ())).get(_FIGURES)
            if figures is None or report.when != "call":
                continue
            name = report.nodeid.rpartition("tests/crash/")[2].partition("[")[0]
            sums.setdefault(name, Counter()).update(
                {**figures, "failed": int(outcome == "failed"), "ms": round(report.duration * 1000)}
            )
    if not sums:
        return
    terminalreporter.section(f"crash campaign, seeds from {SEED}")
    for name, figures in [*sorted(sums.items()), ("all", sum(sums.values(), Counter()))]:
        counts = ", ".join(f"{figures[what]} {what}" for what in (*FIGURES, "failed"))
        terminalreporter.write_line(f"{name}: {counts}, {figures['ms'] / 1000:.1f} s")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails when all tests pass that a line of the known failures stands for."""
    reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput") or ROUNDS < CI_ROUNDS:
        return
    for pattern in KNOWN:
        ends = Counter(
            outcome
            for outcome in ("xfailed", "xpassed")
            for report in reporter.getreports(outcome)
            if _stands_for(pattern, report.nodeid)
        )
        if ends["xpassed"] and not ends["xfailed"]:
            reporter.write_line(
                f"\n{pattern} holds now: take it from tests/crash/known.py", red=True
            )
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _stands_for(pattern: str, nodeid: str) -> bool:
    name = nodeid.rpartition("tests/crash/")[2].replace("[", " ").rstrip("]")
    return "tests/crash/" in nodeid and fnmatchcase(name, pattern)
