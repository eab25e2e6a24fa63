# SPDX-License-Identifier: Apache-2.0
"""The wheel, installed by itself, under spark-submit on a local cluster: executors of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from tests.spark.ingest.stores_and_tables import keys, keys_of, put_some, store_of

pytestmark = pytest.mark.timeout(400)

ROOT = Path(__file__).resolve().parent.parent.parent
_NOT_IN_A_CHECKOUT = shutil.ignore_patterns(
    ".*", "var", "build", "dist", "*.egg-info", "__pycache__", "golden"
)


def _run(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command, cwd=folder, env={**inherited, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command[0]} ends with {done.returncode}:\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and other people's packages as they are installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=_NOT_IN_A_CHECKOUT)
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        folder,
    ]
    _run([*build, checkout], folder)
    shutil.rmtree(checkout)
    (wheel,) = folder.glob("*.whl")
    made = folder / "environment"
    venv.create(made, with_pip=False)
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        made / "bin" / "python",
        "install",
    ]
    _run([*pip, "--quiet", "--no-index", "--no-deps", wheel], folder)
    (packages,) = (made / "lib").glob("python*/site-packages")
    # A folder on the path by a .pth file: the .pth files in it, such as that of the editable
    # install, are not looked at.
    theirs = Path(pyspark.__file__).parent.parent
    (packages / "theirs.pth").write_text(f"{theirs}\n", "utf-8")
    return made


@pytest.fixture(scope="module")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark as it is installed here; what a local cluster writes beside it goes elsewhere."""
    home = tmp_path_factory.mktemp("spark-home")
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


def _file_of(environment: Path, module: str, folder: Path) -> Path:
    program = f"import {module} as module; print(module.__file__)"
    return Path(_run([environment / "bin" / "python", "-c", program], folder).strip())


def test_spark_submit_on_a_local_cluster(
    environment: Path, spark_home: Path, tmp_path: Path
) -> None:
    program = _file_of(environment, "txrocketmq.cli.spark.ingest", tmp_path)
    assert program.is_relative_to(environment)
    store = store_of(tmp_path / "broker-a")
    table = tmp_path / "table"
    python = str(environment / "bin" / "python")
    submit: list[str | Path] = [
        spark_home / "bin" / "spark-submit", "--master", "local-cluster[1,2,1024]",
        "--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m",
        "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1",
        program, "--store", str(store.root), "--out", str(table), "--verify",
    ]  # fmt: skip
    said = _run(
        submit,
        tmp_path,
        SPARK_HOME=str(spark_home),
        PYSPARK_PYTHON=python,
        PYSPARK_DRIVER_PYTHON=python,
        SPARK_LOCAL_IP="127.0.0.1",
        JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1",  # three machines start, and do little
    )
    assert "equal: 60 messages in 6 queues" in said
    assert keys(table) == keys_of(store)
    applications = list((spark_home / "work").iterdir())
    assert applications, "no executor ran in a process of its own"


def test_the_command_of_the_wheel_on_this_machine(environment: Path, tmp_path: Path) -> None:
    """Neither Java nor pyspark is wanted, by the command or by its workers."""
    store = store_of(tmp_path / "broker-a")
    table = tmp_path / "table"
    without = tmp_path / "without"
    without.mkdir()
    (without / "pyspark.py").write_text("raise AssertionError('pyspark is imported')")
    command: list[str | Path] = [
        environment / "bin" / "txrocketmq",
        "ingest",
        "--store",
        str(store.root),
    ]

    def run(*flags: str) -> str:
        whole = [*command, "--out", str(table), *flags]
        return _run(whole, tmp_path, PATH="/nowhere", JAVA_HOME="", PYTHONPATH=str(without))

    assert "equal: 60 messages in 6 queues" in run("--verify")
    put_some(store, 3)
    assert run("--dry-run").startswith("new: ")
    assert len(keys(table)) == 60
