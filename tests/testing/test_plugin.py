# SPDX-License-Identifier: Apache-2.0
"""The fixtures, in a run of their own with a stand-in for the server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import pytest
from txrocketmq.testing import server

events = []

class StandIn(dict):
    @classmethod
    def start(cls, **settings):
        if "c" in settings:
            raise ValueError("broker settings: unknown key c (did you mean a?)")
        events.append(("start", settings))
        return cls(settings)

    def stop(self):
        events.append(("stop", dict(self)))

@pytest.fixture(scope="session", autouse=True)
def stand_in():
    server.Server = StandIn
    yield
    print("EVENTS", events)
"""

TESTS = """
import pytest

def test_one(rocketmq):
    assert rocketmq == {}

@pytest.mark.rocketmq(a=1, b=1)
class TestClass:
    @pytest.mark.rocketmq(b=2)
    def test_settings(self, rocketmq):
        assert rocketmq == {"a": 1, "b": 2}

def test_shared_1(rocketmq_server):
    rocketmq_server["seen"] = True

def test_shared_2(rocketmq_server):
    assert rocketmq_server["seen"]
"""

MISTAKES = """
import pytest

@pytest.mark.rocketmq(c=1)
def test_misspelt(rocketmq):
    pass

@pytest.mark.rocketmq("a=1")
def test_positional(rocketmq):
    pass
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        [*command, str(folder)], cwd=folder, capture_output=True, text=True, check=False
    )


def test_each_test_has_its_own_server_and_the_run_has_one(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = run(tmp_path, "-s", "--strict-markers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    starts = done.stdout.partition("EVENTS")[2]
    assert starts.count("'start'") == starts.count("'stop'") == 3


def test_a_marker_that_is_wrong_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(MISTAKES)
    done = run(tmp_path, "--strict-markers", "-rN")
    told = [line for line in done.stdout.splitlines() if line and line[0] not in "_=E"]
    misspelt, positional = told[:2]
    assert misspelt == "@pytest.mark.rocketmq: broker settings: unknown key c (did you mean a?)"
    by_name = "takes settings by name, as in autoCreateTopicEnable=False, not 'a=1'"
    assert positional == f"@pytest.mark.rocketmq {by_name}"
    assert "2 errors" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_run_without_the_fixtures_imports_no_server(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test():\n"
        "    assert 'txrocketmq.testing.plugin' in sys.modules\n"
        "    assert 'twisted' not in sys.modules\n"
    )
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
