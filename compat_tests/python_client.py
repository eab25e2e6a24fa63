# SPDX-License-Identifier: Apache-2.0
"""The Python client `rocketmq`, which brings librocketmq (C++) along: in a cached environment."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from compat_tests.jars import cache_root

VERSION = "0.4.4"
_DRIVER = Path(__file__).parent / "clients" / "python" / "driver.py"
_INSTALL_TIMEOUT_S = 300
_RUN_TIMEOUT_S = 120


class PythonClientUnavailable(Exception):
    """The client is not in the cache and cannot be installed; the message says why."""


def install() -> Path:
    """The Python of an environment that has the client. Raises PythonClientUnavailable."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise PythonClientUnavailable("the wheel of rocketmq is for Linux on x86-64 only")
    name = f"python-client-{VERSION}-{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_root() / name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", f"rocketmq=={VERSION}"])
        (folder / "complete").touch()
    return python


def _run(command: list[str]) -> None:
    try:
        subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or error
        raise PythonClientUnavailable(
            f"the Python client cannot be installed: {str(said)[-1000:]}"
        ) from error


def run(python: Path, home: Path, **command: Any) -> list[dict[str, Any]]:
    """What one operation of the client reports; AssertionError when it fails.

    Its log goes into the folder `home`.
    """
    home.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(python), str(_DRIVER), json.dumps(command)],
        env={**os.environ, "HOME": str(home)}, cwd=home,  # where it makes folders
        capture_output=True, text=True, timeout=_RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    ended = f"the Python client ended with {done.returncode}"
    assert done.returncode == 0, f"{ended}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
