# SPDX-License-Identifier: Apache-2.0
"""A running Docker engine with images that have a Java runtime or Python.

If an engine is running, it is used as it is. Otherwise root can start one of our own, with its data
and its socket in the cache; on Debian it is installed first. Several test runs may share it: each
holds a shared lock while it runs, and the last one to finish stops it.

An image is pulled if a registry can be reached, and otherwise built from Debian packages. It stays
in the engine's data, so only the first run takes the time.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO

import docker
from docker.errors import DockerException, ImageNotFound

from compat_tests.cache import cache_root, exclusive
from compat_tests.debian import NotInstalled, Say, install


@dataclass(frozen=True)
class Image:
    """A base image: its local name, the image to pull for it, and the Debian package instead."""

    name: str
    pulled: str
    packages: str


JAVA = Image("txrocketmq-jre:17", "eclipse-temurin:17-jre", "openjdk-17-jre-headless")
PYTHON = Image("txrocketmq-python:3", "python:3.13-slim", "python3,python3-venv")
_DEBIAN_RELEASE = "bookworm"
_NETWORKS = (("--ip-forward=false",), ("--bridge=none",))
_START_TIMEOUT_S = 30
_STOP_TIMEOUT_S = 20


class EngineUnavailable(Exception):
    """There is no Docker engine or no image for it here; the message says why."""


class DockerEngine:
    """A Docker engine that answers; call ``close`` when it is no longer needed."""

    def __init__(self, client: docker.DockerClient, users: IO[str] | None) -> None:
        self.client = client
        self._users = users
        self.description = f"Docker {client.version().get('Version', '?')}"

    def see_to(self, image: Image, say: Say) -> None:
        """Makes sure that the engine has the image. Raises EngineUnavailable."""
        with exclusive("image"):
            _see_to_image(self.client, image, say)

    def close(self) -> None:
        """Leaves the engine; stops it if it is our own and nobody else uses it."""
        self.client.close()
        if self._users is None:
            return
        with self._users as users, contextlib.suppress(OSError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _stop_own_daemon()


def open_engine(say: Say, *images: Image) -> DockerEngine:
    """Finds or starts an engine with these images; ``say`` is told what takes time.

    Raises EngineUnavailable.
    """
    client = _ping(os.environ.get("DOCKER_HOST"))
    users: IO[str] | None = None
    if client is None:
        users = _own_file("users.lock").open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
        with exclusive("engine"):
            client = _ping(_own_address()) or _start_own_daemon(say)
        os.environ["DOCKER_HOST"] = _own_address()
    engine = DockerEngine(client, users)
    try:
        for image in images:
            engine.see_to(image, say)
    except BaseException:
        engine.close()
        raise
    return engine


def _ping(address: str | None) -> docker.DockerClient | None:
    try:
        client = docker.DockerClient(base_url=address, timeout=120)
        client.ping()
    except DockerException:
        return None
    return client


def _own_folder() -> Path:
    folder = cache_root() / "engine"
    folder.mkdir(exist_ok=True)
    return folder


def _own_file(name: str) -> Path:
    return _own_folder() / name


def _own_address() -> str:
    return f"unix://{_own_file('docker.sock')}"


def _start_own_daemon(say: Say) -> docker.DockerClient:
    """Starts dockerd with overlayfs, or with plain copies where the kernel has no overlayfs.

    It has a bridge, so that ports of containers can be mapped, unless it does not start with one.
    """
    if os.geteuid() != 0:
        raise EngineUnavailable("no Docker engine is running, and starting one needs root")
    if shutil.which("dockerd") is None:
        _install("docker.io", say)
        if (client := _ping(None)) is not None:  # the package may have started it
            return client
    for driver, network in product(("overlay2", "vfs"), _NETWORKS):
        say(f"starting dockerd ({driver}) in {_own_folder()}")
        client = _run_daemon(driver, network)
        if client is not None:
            return client
    raise EngineUnavailable(f"dockerd does not start; see {_own_file('dockerd.log')}")


def _run_daemon(driver: str, network: tuple[str, ...]) -> docker.DockerClient | None:
    command = [
        *("dockerd", f"--storage-driver={driver}", "--iptables=false", *network),
        *("--data-root", str(_own_file(f"data-{driver}")), "--host", _own_address()),
        *("--exec-root", str(_own_file("exec")), "--pidfile", str(_own_file("dockerd.pid"))),
    ]
    with _own_file("dockerd.log").open("a") as log:
        daemon = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    deadline = time.monotonic() + _START_TIMEOUT_S
    while daemon.poll() is None and time.monotonic() < deadline:
        if (client := _ping(_own_address())) is not None:
            return client
        time.sleep(0.1)
    if daemon.poll() is None:
        daemon.terminate()
        daemon.wait(_STOP_TIMEOUT_S)
    return None


def _stop_own_daemon() -> None:
    pid_file = _own_file("dockerd.pid")
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    command = Path(f"/proc/{pid}/cmdline")
    if not command.exists() or str(_own_folder()).encode() not in command.read_bytes():
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while pid_file.exists() and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.05)
    # The daemon leaves a network namespace mounted, so the cache could not be deleted.
    subprocess.run(["umount", str(_own_file("exec") / "netns" / "default")], check=False)


def _install(package: str, say: Say) -> None:
    try:
        install(package, say)
    except NotInstalled as error:
        raise EngineUnavailable(str(error)) from error


def _see_to_image(client: docker.DockerClient, image: Image, say: Say) -> None:
    with contextlib.suppress(ImageNotFound):
        client.images.get(image.name)
        return
    say(f"pulling {image.pulled}")
    try:
        client.images.pull(image.pulled).tag(*image.name.split(":"))
    except DockerException as error:
        say(f"no image registry can be reached ({str(error)[:100]}...)")
        _build_image(client, image, say)


def _build_image(client: docker.DockerClient, image: Image, say: Say) -> None:
    if os.geteuid() != 0:
        raise EngineUnavailable("no image registry can be reached, and building one needs root")
    if shutil.which("mmdebstrap") is None:
        _install("mmdebstrap", say)
    say(f"making an image of Debian's {image.packages}, about half a minute")
    archive = _own_file("rootfs.tar")
    command = [
        *("mmdebstrap", "--quiet", "--variant=essential", f"--include={image.packages}"),
        *(_DEBIAN_RELEASE, str(archive)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    try:
        if done.returncode != 0:
            raise EngineUnavailable(f"mmdebstrap failed: {done.stderr.strip()[-500:]}")
        repository, tag = image.name.split(":")
        client.api.import_image_from_file(str(archive), repository=repository, tag=tag)
        client.images.get(image.name)
    except DockerException as error:
        raise EngineUnavailable(f"the image cannot be imported: {error}") from error
    finally:
        archive.unlink(missing_ok=True)
