# SPDX-License-Identifier: Apache-2.0
"""What ``make dist`` makes, installed by pip and pipx, with dependencies from a package index."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat_tests.image import ROOT
from compat_tests.scene import poll

pytestmark = pytest.mark.timeout(900)

_TIMEOUT_S = 600


def run(command: Sequence[Any], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_it_is_made_without_the_development_environment(dist: Path) -> None:
    """Archives, and nothing else that git does not know."""
    assert [path.suffix for path in sorted(dist.iterdir())] == [".whl", ".gz"]
    assert not (dist.parent / ".venv").exists()


def test_it_has_the_stubs_of_the_client(dist: Path, wheel: Path) -> None:
    """They are not kept in the repository."""
    stubs = {f"client/{face}.pyi" for face in ("aio", "blocking", "tx")}
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert stubs <= {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        assert {f"txrocketmq/{stub}" for stub in stubs} <= set(archive.namelist())


def test_a_package_index_would_take_it(dist: Path) -> None:
    archives = [str(path) for path in sorted(dist.iterdir())]
    said = run([sys.executable, "-m", "twine", "check", "--strict", *archives], dist)
    assert said.count("PASSED") == 2


def test_the_source_archive_makes_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    for name in ("Dockerfile", "compose.yaml"):
        assert not (unpacked / name).exists(), "images are made of checkouts"
    assert (unpacked / "README.md").read_bytes() == (ROOT / "README.md").read_bytes()


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment in which nothing is but what pip installs with the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    run([sys.executable, "-m", "venv", folder], folder)
    pip_install(folder / "bin", str(wheel))
    return folder / "bin"


def pip_install(programs: Path, package: str) -> None:
    options = ["--quiet", "--disable-pip-version-check"]
    run([programs / "pip", "install", *options, package], programs)


def test_pip_installs_three_commands_that_work(programs: Path, tmp_path: Path) -> None:
    assert "listenPort=9876" in run([programs / "mqnamesrv", "-p"], tmp_path)
    assert "listenPort=10911" in run([programs / "mqbroker", "-p"], tmp_path)
    for command in ("txrocketmq", "mqbroker", "mqnamesrv"):
        assert run([programs / command, "--version"], tmp_path).startswith(f"{command} ")
    said = run([programs / "python", "-m", "txrocketmq", "--version"], tmp_path)
    assert said.startswith("txrocketmq ")
    for command in ("standalone", "send", "tail", "consume", "store", "ingest", "report"):
        shown = run([programs / "txrocketmq", command, "--help"], tmp_path)
        assert shown.lower().startswith(f"usage: txrocketmq {command}")


def test_what_wants_more_says_how_to_get_it(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    command = [f"{programs}/txrocketmq", "ingest", "--store", "store", "--out", "table"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'txrocketmq[ingest]'" in done.stderr


def other_python(release: str) -> str | None:
    """An interpreter of this release, on the path or one of pyenv's; None without one."""
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: list[Any] = [
        shutil.which(f"python{release}"),
        *of_pyenv.glob(f"{release}.*/bin/python{release}"),
    ]
    for each in filter(None, found):
        done = subprocess.run([each, "-c", "import venv"], capture_output=True, check=False)
        if done.returncode == 0:
            return str(each)
    return None


@pytest.mark.parametrize("release", ["3.12", "3.13", "3.14"])
def test_it_runs_on_other_pythons(release: str, wheel: Path, tmp_path: Path) -> None:
    python = other_python(release)
    if python is None:
        pytest.skip(f"there is no Python {release} on this machine")
    run([python, "-m", "venv", tmp_path / "other"], tmp_path)
    programs = tmp_path / "other" / "bin"
    pip_install(programs, str(wheel))
    program = [f"{programs}/txrocketmq"]
    with standalone([*program, "standalone"], tmp_path) as namesrv:
        run([*program, "send", "-n", namesrv, "T", "one", "two"], tmp_path)
        tail = ["tail", "-n", namesrv, "T", "--from", "first", "--count", "2"]
        assert len(run([*program, *tail], tmp_path).splitlines()) == 2


def test_pipx_runs_a_server_without_installing_it(
    programs: Path, wheel: Path, tmp_path: Path
) -> None:
    pip_install(programs, "pipx")
    command = [f"{programs}/pipx", "run", "--spec", str(wheel), "txrocketmq", "standalone"]
    with standalone(command, tmp_path) as namesrv:
        run([programs / "txrocketmq", "send", "-n", namesrv, "T", "one"], tmp_path)


@contextmanager
def standalone(command: list[str], folder: Path) -> Iterator[str]:
    """Runs a server by this command; the name server's address. It has to end in order."""
    ready = folder / "ready"
    options = ["--namesrv-port", "0", "--broker-port", "0", "--store", f"{folder}/store"]
    server = subprocess.Popen(
        [*command, *options, "--ready-file", str(ready)],
        env={**os.environ, "PIPX_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        poll(lambda: ready.exists() or server.poll() is not None, "the server is ready", 300)
        assert ready.exists(), server.communicate()[0]
        yield ready.read_text().split()[0]
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=60)
    assert not (folder / "store" / "abort").exists()
