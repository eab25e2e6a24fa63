# SPDX-License-Identifier: Apache-2.0
"""Runs Java programs in containers (testcontainers), or on the Java of this machine.

Both engines have the same interface: ``start(name, arguments)`` runs ``java`` with the arguments
and returns a ``JavaProcess``. Containers use the machine's network, and see the cache and the work
folder under the same paths, so callers need not know which of the two engines they have.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from docker.errors import DockerException, NotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from compat_tests.cache import cache_root
from compat_tests.debian import Say
from compat_tests.docker_engine import JAVA, DockerEngine, EngineUnavailable, open_engine

_LABEL = "txrocketmq.compat.pid"


class JavaProcess(Protocol):
    """A running ``java``."""

    name: str

    def alive(self) -> bool: ...

    def terminate(self, timeout_s: float) -> None:
        """Sends SIGTERM, and SIGKILL if that is not enough; returns when the process is gone."""

    def kill(self) -> None:
        """Sends SIGKILL; returns when the process is gone."""

    def log(self, last: int | None = None) -> str:
        """Returns what it has written to its outputs: so many of the last lines, or all lines."""


class Engine(Protocol):
    """Runs ``java``."""

    description: str

    def start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> JavaProcess: ...

    def close(self) -> None: ...


class ContainerEngine:
    """Java in containers of one image."""

    def __init__(self, docker: DockerEngine, work_folder: Path) -> None:
        self.docker = docker
        self._work_folder = work_folder
        self.description = f"Java in testcontainers: {docker.description}, image {JAVA.name}"
        self._remove_orphans()

    def start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> "ContainerProcess":
        container = DockerContainer(JAVA.name)
        container.with_command(["java", *arguments])
        container.with_envs(**environment)
        sources = str(Path(__file__).parents[1])
        container.with_volume_mapping(sources, sources, "ro")
        for folder in {str(cache_root()), str(self._work_folder)}:
            container.with_volume_mapping(folder, folder, "rw")
        container.with_kwargs(network_mode="host", labels={_LABEL: str(os.getpid())})
        container.start()
        return ContainerProcess(name, container)

    def close(self) -> None:
        self.docker.close()

    def _remove_orphans(self) -> None:
        """Removes containers of test runs that were killed before they could clean up."""
        for container in self.docker.client.containers.list(
            all=True, filters={"label": _LABEL}, ignore_removed=True
        ):
            if not Path(f"/proc/{container.labels[_LABEL]}").exists():
                with contextlib.suppress(DockerException):
                    container.remove(force=True)


class ContainerProcess:
    """A container whose only process is ``java``."""

    def __init__(self, name: str, container: DockerContainer) -> None:
        self.name = name
        self._container = container
        self._last_log: str | None = None

    def alive(self) -> bool:
        if self._last_log is not None:
            return False
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        return bool(wrapped.status == "running")

    def terminate(self, timeout_s: float) -> None:
        if self._last_log is None:
            self._container.get_wrapped_container().stop(timeout=int(timeout_s))
            self._remove()

    def kill(self) -> None:
        if self._last_log is None:
            with contextlib.suppress(DockerException):  # it may have ended by itself
                self._container.get_wrapped_container().kill("SIGKILL")
            self._remove()

    def log(self, last: int | None = None) -> str:
        if self._last_log is not None:
            return _end(self._last_log, last)
        container = self._container.get_wrapped_container()
        try:
            written = container.logs(tail="all" if last is None else last)
        except NotFound:
            return "(the container is gone)"
        return str(written.decode(errors="replace"))

    def _remove(self) -> None:
        self._last_log = self.log()
        self._container.stop()


class LocalEngine:
    """Java as a plain process of this machine."""

    def __init__(self, java: str, work_folder: Path, why: str) -> None:
        self._java = java
        self._work_folder = work_folder
        self.description = f"Java WITHOUT containers, {java} of this machine: {why}"

    def start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> "LocalProcess":
        return LocalProcess(name, [self._java, *arguments], environment, self._work_folder)

    def close(self) -> None:
        """Does nothing, since nothing is kept open."""


class LocalProcess:
    """``java``, or any other program, as a child of the test run; its output goes to a file."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.name = name
        descriptor, log = tempfile.mkstemp(".log", f"{name}.", folder)
        self._log = Path(log)
        with os.fdopen(descriptor, "wb") as output:
            self._process = subprocess.Popen(
                [*_ends_with_its_parent(), *command],
                env={**os.environ, **environment},
                cwd=folder,  # where some commands of mqadmin make folders
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def terminate(self, timeout_s: float) -> None:
        if self.alive():
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        if self.alive():
            self._process.kill()
        self._process.wait()

    def log(self, last: int | None = None) -> str:
        return _end(self._log.read_text(errors="replace"), last)


def _end(text: str, lines: int | None) -> str:
    return text if lines is None else "\n".join(text.splitlines()[-lines:])


def _ends_with_its_parent() -> list[str]:
    """Returns a prefix for a command that ends with this test run, even if that is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def open_java(where: str, work_folder: Path, say: Say) -> Engine:
    """Opens an engine: ``container`` (or local, if there are no containers) or ``local``.

    Raises EngineUnavailable when there is neither.
    """
    why = "asked for"
    if where == "container":
        testcontainers_config.ryuk_disabled = True
        try:
            return ContainerEngine(open_engine(say, JAVA), work_folder)
        except EngineUnavailable as error:
            why = str(error)
    java = shutil.which("java")
    if java is None:
        raise EngineUnavailable(f"{why}; and there is no java on this machine")
    return LocalEngine(java, work_folder, why)
