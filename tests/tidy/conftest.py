# SPDX-License-Identifier: Apache-2.0
"""What the tidy tests look at: the repository's own files, not what is made beside them."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.parts import PARTS

ROOT = Path(__file__).resolve().parent.parent.parent
for _name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"):
    os.environ.pop(_name, None)  # of a commit whose hook runs the tests, which make repositories

_MADE = {"var", "build", "dist", "target", "typings", "__pycache__"}


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _MADE or path.name.endswith(".egg-info"):
            continue
        if path.name.startswith(".") and path.name not in {".ci", ".gitignore"}:
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def repository_files() -> list[Path]:
    """All files that belong to the repository."""
    return list(_walk(ROOT))


@pytest.fixture(scope="session")
def python_files(repository_files: list[Path]) -> list[Path]:
    """All Python files of the repository, including tests."""
    return [path for path in repository_files if path.suffix == ".py"]


@pytest.fixture(scope="session")
def modules(python_files: list[Path]) -> list[Path]:
    """The modules of the packages, as paths inside the repository."""
    inside = [path.relative_to(ROOT) for path in python_files]
    return [path for path in inside if path.parts[0] in PARTS]


@pytest.fixture(scope="session")
def trees(python_files: list[Path]) -> dict[Path, ast.Module]:
    """The syntax trees of all Python files, by path; parsing them takes a second."""
    return {path.relative_to(ROOT): ast.parse(path.read_text("utf-8")) for path in python_files}


@pytest.fixture(scope="session")
def listed() -> Callable[[list[str]], str]:
    """Returns findings one per line, for the text of a failure."""
    return lambda findings: "\n  ".join(["", *findings])
