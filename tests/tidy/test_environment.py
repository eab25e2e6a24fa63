# SPDX-License-Identifier: Apache-2.0
"""`make unit` needs little: an environment of wheels, and tests that need nothing else.

What it leaves out is run by `make spark` and the other kinds, so that `make test` runs all tests.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

LARGE = {"pyspark", "pyarrow", "pandas", "polars", "datafusion", "duckdb", "moto", "matplotlib"}
KINDS = ("unit", "spark", "tidy", "process", "engine", "compat")
"""The kinds of tests that `make test` runs."""
IMPORTED_AS = {"OpenSSL": "pyopenssl", "opentelemetry": "opentelemetry-sdk"}
OURS = {"txrocketmq", "tests", "compat_tests", "benchmarks", "docs"}


@pytest.fixture(scope="session")
def extras(root: Path) -> dict[str, list[str]]:
    """The extras of the package and what each of them asks for."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def _names(extras: dict[str, list[str]], extra: str) -> set[str]:
    """The packages of an extra, also by way of our other extras."""
    names: set[str] = set()
    for requirement in map(Requirement, extras[extra]):
        if requirement.name == "txrocketmq":
            names.update(*(_names(extras, each) for each in requirement.extras))
        else:
            names.add(requirement.name.lower())
    return names


def _commands(root: Path, kind: str) -> str:
    done = subprocess.run(
        ["make", "--dry-run", kind], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.replace("\\\n", " ")


def _left_out(root: Path) -> set[Path]:
    """The folders that `make unit` ignores."""
    return {Path(name) for name in re.findall(r"--ignore (\S+)", _commands(root, "unit"))}


def test_the_small_environment_has_no_large_packages(extras: dict[str, list[str]]) -> None:
    assert not LARGE & _names(extras, "unit")
    assert _names(extras, "dev") >= LARGE | _names(extras, "unit")


def test_unit_tests_get_the_small_environment(root: Path) -> None:
    assert "scripts/environment unit\n" in _commands(root, "unit")
    assert "scripts/environment dev\n" in _commands(root, "spark")


def test_what_unit_tests_leave_out_is_run_by_other_kinds(root: Path) -> None:
    run = {word for kind in KINDS for word in _commands(root, kind).split()}
    left_out = _left_out(root)
    assert Path("tests/spark") in left_out
    assert not {str(folder) for folder in left_out} - run
    lanes = _commands(root, "test")
    assert all(re.search(rf"\b{kind}\b", lanes) for kind in KINDS)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_unit_tests_import_only_what_the_small_environment_has(
    root: Path,
    extras: dict[str, list[str]],
    trees: dict[Path, ast.Module],
    listed: Callable[[list[str]], str],
) -> None:
    names = {name.replace("-", "_") for name in _names(extras, "unit") | _names(extras, "")}
    known = {*sys.stdlib_module_names, *OURS, *names, "docker"}  # docker comes with testcontainers
    left_out = _left_out(root)
    wrong = []
    for path, tree in trees.items():
        if path.parts[0] != "tests" or any(path.is_relative_to(folder) for folder in left_out):
            continue
        for module in _imports(tree):
            package = module.partition(".")[0]
            package = IMPORTED_AS.get(package, package)
            if package.replace("-", "_") not in known or ".spark" in module:
                wrong.append(f"{path}: {module}")
    assert not wrong, listed(wrong)


def test_an_environment_that_does_not_exist_is_refused(root: Path) -> None:
    done = subprocess.run(
        [root / "scripts" / "environment", "devel"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "txrocketmq: there is no environment devel; there are run unit dev\n"
