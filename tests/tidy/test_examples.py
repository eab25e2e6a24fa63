# SPDX-License-Identifier: Apache-2.0
"""Property tests: profiles govern them all, CI draws more of them, and fuzzing finds and ends."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from tests import fuzz
from tests.examples import PROFILES, USUAL, examples

PROBE = """
from hypothesis import given, settings, strategies as st
from tests.examples import examples

seen = []

@settings(max_examples=examples(10))
@given(st.integers())
def test_probe(number):
    seen.append(number)

def test_count():
    print("drawn", len(seen))

@given(st.integers())
def test_wrong(number):
    assert number < 1_000
"""


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """PROBE as a test module, with the profiles of ours."""
    (tmp_path / "conftest.py").write_text("from tests.examples import register\nregister()\n")
    path = tmp_path / "test_probe.py"
    path.write_text(PROBE)
    return path


def said_of(probe: Path, root: Path, *arguments: str, **environment: str) -> str:
    """What pytest says of it."""
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-k", "probe or count", *arguments]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(probe)],
        cwd=root, capture_output=True, text=True, check=False,
        env=os.environ | {"CI": ""} | environment,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_the_profile_governs_those_that_draw_fewer_too(probe: Path, root: Path) -> None:
    assert "drawn 10\n" in said_of(probe, root)
    assert "drawn 30\n" in said_of(probe, root, CI="true")
    assert "drawn 500\n" in said_of(probe, root, "--hypothesis-profile", "thorough")


def test_no_test_draws_a_fixed_number(root: Path, listed: Callable[[list[str]], str]) -> None:
    found = [
        f"{path.relative_to(root)}:{node.value.lineno}: write examples({node.value.value!r})"
        for path in (root / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword)
        and node.arg == "max_examples"
        and isinstance(node.value, ast.Constant)
    ]
    assert not found, listed(found)


def test_profiles_are_registered() -> None:
    for name, count in PROFILES.items():
        assert hypothesis.settings.get_profile(name).max_examples == count
    assert USUAL < PROFILES["ci"] < PROFILES["thorough"]
    assert examples(USUAL) == hypothesis.settings().max_examples


def test_fuzzing_runs_decoders_and_servers() -> None:
    found = fuzz.modules()
    for module in (
        "tests/remoting/frame/test_frame.py",
        "tests/remoting/serialize/test_rocketmq.py",
        "tests/remoting/protocol/body/test_base.py",
        "tests/properties/test_record.py",
        "tests/properties/test_bad_input.py",
        "tests/spark/arrow/test_walk.py",
    ):
        assert module in found
    assert not [module for module in found if module.startswith("tests/engine")]


def test_fuzzing_counts_and_says_how_to_see_a_failure_again(
    probe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzz.main([str(probe), "--minutes", "0.01", "--seed", "5"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("fuzz: 0.01 minutes, --seed 5\n")
    assert "test_wrong(" in said
    assert "number=1000" in said
    assert "to see it again: python -m pytest -q -m hypothesis" in said
    assert "--hypothesis-seed" in said
    covered = next(line for line in said.splitlines() if line.endswith(f"  {probe}"))
    assert int(covered.split()[0]) > PROFILES["fuzz"] // 2


def test_fuzzing_ends_by_itself_without_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--minutes", "0"]) == 0
    assert capsys.readouterr().out.endswith("0 examples in 0 runs of 0 modules; 0 failed\n")
