# SPDX-License-Identifier: Apache-2.0
"""pre-commit runs here with what `.venv` has, and refuses a commit that is not in order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CONFIG = ".pre-commit-config.yaml"
LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A git repository with our settings, and the environment of this run as its `.venv`."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in (CONFIG, "pyproject.toml"):
        shutil.copy(root / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / ".gitignore").write_text(".venv\n")
    (folder / "tool.py").write_text(f'{LICENCE}"""A module."""\n\nNAME = "x"\n')
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


def _run(checkout: Path, hook: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", hook, "--all-files"],
        cwd=checkout,
        env={**os.environ, "PRE_COMMIT_HOME": str(checkout.parent / "home")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("hook", "wrong"), [("format", "NAME  =  'x'"), ("lint", "import os")])
def test_a_hook_refuses_what_is_wrong(checkout: Path, hook: str, wrong: str) -> None:
    done = _run(checkout, hook)
    assert done.returncode == 0, done.stdout + done.stderr
    module = checkout / "tool.py"
    module.write_text(module.read_text().replace('NAME = "x"', wrong))
    done = _run(checkout, hook)
    assert done.returncode == 1, done.stdout + done.stderr


def test_tests_of_a_hook_leave_the_repository_alone_that_is_committed(root: Path) -> None:
    code = "import os, tests.tidy.conftest; print(os.environ.get('GIT_INDEX_FILE'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root, env={**os.environ, "GIT_INDEX_FILE": "index"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "None\n"


def test_nothing_is_downloaded_and_every_tool_is_there(root: Path) -> None:
    repositories = yaml.safe_load((root / CONFIG).read_text("utf-8"))["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    hooks = repositories[0]["hooks"]
    assert {hook["id"] for hook in hooks} == {"format", "lint", "layers", "tidy"}
    for hook in hooks:
        assert hook["language"] == "system"
        (program,) = (Path(word) for word in hook["entry"].split() if word.startswith(".venv/bin/"))
        assert (Path(sys.executable).parent / program.name).exists(), f"no {program} is installed"
