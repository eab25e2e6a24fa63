# SPDX-License-Identifier: Apache-2.0
"""The original's side of the comparison: class paths of its jars and of the load programs."""

import functools
import hashlib
import os
import platform
import subprocess
from pathlib import Path
from typing import Any, Final

from compat_tests import cache, go_client, jars

RELEASE: Final = "4.9.7"
LATER_RELEASE: Final = "5.4.0"
"""The release for loads that 4.9.7 does not support."""
SOURCE: Final = Path(__file__).parent / "java" / "Load.java"


class LoadNotCompiled(Exception):
    """javac is missing or has failed on Load.java; the message has its output."""


def server_classpath(release: str = RELEASE) -> str:
    """Returns the servers' class path. Raises compat_tests.jars.JarsUnavailable."""
    return f"{jars.resolve(release, 'server')}/*"


@functools.cache
def load_classpath(release: str = RELEASE) -> str:
    """Returns the class path of the load program, compiled once for each source, and the client.

    Raises LoadNotCompiled, compat_tests.jars.JarsUnavailable.
    """
    client = f"{jars.resolve(release, 'client')}/*"
    # The cache serves all checkouts: what another one compiled from its source is not this program.
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    classes = cache.cache_root() / "bench" / f"{release}-{digest}"
    if not (classes / "Load.class").exists():
        classes.mkdir(parents=True, exist_ok=True)
        _compile(client, classes)
    return f"{classes}:{client}"


@functools.cache
def go_program() -> Path:
    """Returns the compat tests' program with Apache's Go client. Raises go_client.GoUnavailable."""
    return go_client.build()


def machine() -> dict[str, Any]:
    """Describes the machine, and the release that was compared with."""
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "original": RELEASE,
    }


def _compile(classpath: str, classes: Path) -> None:
    command = ["javac", "-Xlint:all", "-cp", classpath, "-d", str(classes), str(SOURCE)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LoadNotCompiled("javac, which compiles the load program, is not installed") from error
    if done.returncode:
        raise LoadNotCompiled(f"javac refused {SOURCE.name}:\n{done.stderr}")
