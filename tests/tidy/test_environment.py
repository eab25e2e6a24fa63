# SPDX-License-Identifier: Apache-2.0
"""`make unit` needs little: an environment of wheels, and tests that need nothing else.

What it leaves out is run by `make spark` and the other kinds, so that `make test` runs all tests.
"""

from __future__ import annotations

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
IMPORTED_AS = {"OpenSSL": "pyopenssl", "opentelemetry": "opentelemetry-sdk", "google": "protobuf"}
_IMPORT = re.compile(
    r"^(?:import ([\w.]+)|from ([\w.]+) import ((?:\([^)]*\)|[^(\n]*)))", re.MULTILINE
)
BROUGHT = {"docker", "zope", "hpack", "hyperframe"}
"""Packages that come with others: with testcontainers, Twisted and h2."""
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


def _imports(text: str) -> Iterator[str]:
    """The modules that are imported when this one is, also by `from package import module`."""
    for module, package, names in _IMPORT.findall(text):
        if module:
            yield module
        else:
            yield package
            yield from (f"{package}.{name}" for name in re.findall(r"\w+", names))


class Imports:
    """The packages of others that files of ours need when they are imported."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Path, dict[str, str]] = {}

    def of(self, path: Path) -> dict[str, str]:
        """Returns the names of the packages, each with the way from this file to it."""
        if path not in self._known:
            found = self._known[path] = {}
            for module in _imports((self._root / path).read_text("utf-8")):
                package = module.partition(".")[0]
                if package not in OURS:
                    found.setdefault(package, str(path))
                elif place := self._place(module):
                    for name, way in self.of(place).items():
                        found.setdefault(name, f"{path} > {way}")
        return self._known[path]

    def _place(self, module: str) -> Path | None:
        path = Path(*module.removeprefix("txrocketmq.").split("."))
        places = (path.with_suffix(".py"), path / "__init__.py")
        return next((place for place in places if (self._root / place).exists()), None)


def test_unit_tests_import_only_what_the_small_environment_has(
    root: Path,
    extras: dict[str, list[str]],
    python_files: list[Path],
    listed: Callable[[list[str]], str],
) -> None:
    names = {name.replace("-", "_") for name in _names(extras, "unit") | _names(extras, "")}
    have = {*sys.stdlib_module_names, *names, *BROUGHT}
    left_out, imports = _left_out(root), Imports(root)
    wrong: dict[str, str] = {}
    for path in (file.relative_to(root) for file in python_files):
        if path.parts[0] != "tests" or any(path.is_relative_to(folder) for folder in left_out):
            continue
        for package, way in imports.of(path).items():
            if IMPORTED_AS.get(package, package).replace("-", "_") not in have:
                wrong.setdefault(package, way)
    assert "twisted" in imports.of(Path("tests/broker/conftest.py")), "imports are followed"
    assert "pyarrow" in imports.of(Path("tests/spark/test_batch.py"))
    assert not wrong, listed([f"{package}: {way}" for package, way in wrong.items()])


def test_an_environment_that_does_not_exist_is_refused(root: Path) -> None:
    done = subprocess.run(
        [root / "scripts" / "environment", "devel"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "txrocketmq: there is no environment devel; there are run unit dev\n"
