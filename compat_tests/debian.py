# SPDX-License-Identifier: Apache-2.0
"""Debian packages that tests need, installed by the tests where that is possible."""

import os
import shutil
import subprocess
from collections.abc import Callable

from compat_tests.cache import exclusive

Say = Callable[[str], object]


class NotInstalled(Exception):
    """A package is missing and cannot be installed here; the message says why."""


def install(package: str, say: Say) -> None:
    """Installs a package; ``say`` is told, as it takes time. Raises NotInstalled."""
    if os.geteuid() != 0:
        raise NotInstalled(f"{package} is not installed, and installing it needs root")
    if shutil.which("apt-get") is None:
        raise NotInstalled(f"{package} is not installed, and there is no apt-get to do it")
    say(f"installing {package}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    with exclusive("packages"):
        for each in (command, ["apt-get", "update", "-qq"], command):
            done = subprocess.run(
                each, env=environment, capture_output=True, text=True, check=False, timeout=600
            )
            if each is command and done.returncode == 0:
                return
    raise NotInstalled(f"apt-get cannot install {package}: {done.stderr.strip()[-500:]}")
