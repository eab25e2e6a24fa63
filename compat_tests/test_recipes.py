# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/testing.md, run as they are: Python, Java, Go, GitHub Actions."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compat_tests.docker_engine import DockerEngine
from compat_tests.image import ROOT
from compat_tests.jars import (
    RELEASES,
    JarsUnavailable,
    compiler,
    resolve,
    with_testcontainers,
)

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("image")]

_TIMEOUT_S = 600
_BIN = Path(sys.executable).parent
_GO_MODULE = Path(__file__).parent / "clients" / "go_recipe"
_ENVIRONMENT = {
    **os.environ,
    "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}",
    # Its images are not to be had where no registry is reached.
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    "TESTCONTAINERS_CHECKS_DISABLE": "true",
    # It looks for the gateway where it takes this machine for a container.
    "TESTCONTAINERS_HOST_OVERRIDE": "localhost",
}


def recipes(folder: Path, language: str) -> list[str]:
    """Writes the blocks of this language that begin with the name of a file; these names."""
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    names = []
    for text in re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        named = re.match(r"(?:#|//) (\S+\.\w+)\n", text)
        if named is not None:
            names.append(named[1])
            (folder / Path(named[1]).name).write_text(text, "utf-8")
    assert names
    return names


def run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **_ENVIRONMENT,
            "DOCKER_HOST": os.environ.get("DOCKER_HOST", ""),
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(autouse=True)
def _no_container_stays(docker_engine: DockerEngine) -> Any:
    def ids() -> set[str]:
        # Tests that run beside these have containers of the image, too, but not by testcontainers.
        wanted = {"ancestor": "txrocketmq:latest", "label": "org.testcontainers=true"}
        found = docker_engine.client.containers.list(filters=wanted, ignore_removed=True)
        return {str(container.id) for container in found}

    before = ids()
    yield
    left = ids() - before
    for each in left:
        docker_engine.client.containers.get(each).remove(force=True, v=True)
    assert not left


def test_python(tmp_path: Path) -> None:
    names = recipes(tmp_path, "python")
    run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names], tmp_path)


def test_java(tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no java on this machine")
    try:
        folders, ecj = (with_testcontainers(), resolve(RELEASES[0], "client")), compiler()
    except JarsUnavailable as error:
        pytest.skip(str(error))
    names = recipes(tmp_path, "java")
    found = [jar for folder in folders for jar in sorted(folder.glob("*.jar"))]
    # With logback, Testcontainers would log everything to the standard output.
    jars = ":".join(str(jar) for jar in found if not jar.name.startswith("logback"))
    options = ["--release", "17", "-nowarn", "-proc:none", "-cp", jars]
    run([java, "-jar", ecj, *options, *names], tmp_path)
    for program, said in (("Orders", ["SEND_OK", "one"]), ("Secured", ["SEND_OK"])):
        assert run([java, "-cp", f"{jars}:{tmp_path}", program], tmp_path).split() == said


def test_go(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go on this machine")
    recipes(tmp_path, "go")
    for name in ("go.mod", "go.sum"):
        shutil.copy(_GO_MODULE / name, tmp_path)
    run([go, "build", "-buildvcs=false", "-o", "orders", "."], tmp_path)
    assert run([tmp_path / "orders"], tmp_path).split()[-1] == "one"
    assert "--- PASS: TestWithAnAccount" in run([go, "test", "-v", "."], tmp_path)
