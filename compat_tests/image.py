# SPDX-License-Identifier: Apache-2.0
"""Builds the container image from ``Dockerfile`` and the wheel: ``make image`` runs this.

Where no image registry can be reached, the image begins with Debian packages instead of
``python:slim``, and pip in it gets the wheels of all dependencies with the build context and asks
no package index. All else in the ``Dockerfile`` is done as it stands there.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docker.errors import BuildError, DockerException

from compat_tests.cache import cache_root, exclusive
from compat_tests.debian import Say
from compat_tests.docker_engine import (
    PYTHON,
    DockerEngine,
    EngineUnavailable,
    open_engine,
)

ROOT = Path(__file__).parent.parent
NAME = "txrocketmq:latest"
_TIMEOUT_S = 900


class NotBuilt(Exception):
    """The image could not be built; the message says why."""


def distribution(folder: Path) -> Path:
    """Runs ``make dist`` in a clean copy of the checkout in this folder; returns its dist/.

    Raises NotBuilt.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    done = subprocess.run(
        ["make", "dist"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise NotBuilt(f"make dist fails:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return folder / "dist"


def build(engine: DockerEngine, dist: Path, tag: str, say: Say) -> None:
    """Builds the image from the wheel in this folder. Raises NotBuilt, EngineUnavailable."""
    engine.see_to(PYTHON, say)
    (wheel,) = dist.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        for name in ("Dockerfile", ".dockerignore"):
            shutil.copy(ROOT / name, context)
        with exclusive("wheels"):
            shutil.copytree(_wheels(engine, wheel, say), context / "dist")
        shutil.copy(wheel, context / "dist")
        say(f"building {tag} on {PYTHON.name}")
        try:
            with _leaving_no_others(engine):
                engine.client.images.build(
                    path=str(context),
                    tag=tag,
                    buildargs={"BASE": PYTHON.name, "PIP_NO_INDEX": "1"},
                    network_mode="none",
                    rm=True,
                    forcerm=True,
                )
        except BuildError as error:
            log = "".join(each.get("stream", "") for each in error.build_log)
            raise NotBuilt(f"{error}; its log ends:\n{log[-3000:]}") from error
        except DockerException as error:
            raise NotBuilt(str(error)) from error


@contextlib.contextmanager
def _leaving_no_others(engine: DockerEngine) -> Iterator[None]:
    """Removes images without a name that a build leaves: its first stage, the tag's old image."""
    with exclusive("building"):
        before = _unnamed(engine)
        yield
        for image in _unnamed(engine) - before:
            with contextlib.suppress(DockerException):  # a container may still use it
                engine.client.images.remove(image)


def _unnamed(engine: DockerEngine) -> set[str]:
    return {str(image.id) for image in engine.client.images.list(filters={"dangling": True})}


def _wheels(engine: DockerEngine, wheel: Path, say: Say) -> Path:
    """Returns a cached folder of wheels that this wheel needs with the image's Python."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    run = engine.client.containers.run
    version = run(PYTHON.name, ["python3", "-c", program], remove=True, network_mode="none")
    release = str(version.decode()).strip()
    folder = cache_root() / "wheels" / release
    say(f"collecting wheels for Python {release} in {folder}")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--python-version", release, "--only-binary", ":all:", "--find-links", str(folder)),
        *("--dest", str(folder), f"{wheel}[grpc]"),  # as the Dockerfile installs it
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise NotBuilt(f"pip cannot collect the wheels: {done.stderr.strip()[-1000:]}")
    for own in folder.glob("txrocketmq-*.whl"):
        own.unlink()
    return folder


def main() -> int:
    """Builds the image txrocketmq from the wheel in dist/; returns the exit code."""
    say = print
    dist = ROOT / "dist"
    with tempfile.TemporaryDirectory() as folder:
        newest = max(dist.glob("*.whl"), key=lambda path: path.stat().st_mtime)
        shutil.copy(newest, folder)
        try:
            engine = open_engine(say)
            try:
                build(engine, Path(folder), NAME, say)
                size = engine.client.images.get(NAME).attrs["Size"]
            finally:
                engine.close()
        except (EngineUnavailable, NotBuilt) as error:
            print(f"image: {error}", file=sys.stderr)
            return 1
    print(f"image: {NAME}, {size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
