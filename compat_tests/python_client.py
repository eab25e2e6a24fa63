# SPDX-License-Identifier: Apache-2.0
"""The Python clients, each in a cached environment of its own.

`rocketmq` contains librocketmq (C++) and speaks remoting; `rocketmq-python-client` speaks gRPC.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from compat_tests.cache import cache_root, exclusive

REMOTING = "rocketmq==0.4.4"
GRPC = "rocketmq-python-client==5.1.2"
_PROGRAMS = Path(__file__).parent / "clients" / "python"
_DRIVERS = {REMOTING: _PROGRAMS / "driver.py", GRPC: _PROGRAMS / "grpc_driver.py"}
_INSTALL_TIMEOUT_S = 300
_RUN_TIMEOUT_S = 120


class PythonClientUnavailable(Exception):
    """The client is not in the cache and cannot be installed; the message says why."""


def install(client: str = REMOTING) -> Path:
    """Returns the Python of an environment with the client. Raises PythonClientUnavailable."""
    is_usual = sys.platform == "linux" and platform.machine() == "x86_64"
    if client == REMOTING and not is_usual:
        raise PythonClientUnavailable("the wheel of rocketmq is for Linux on x86-64 only")
    python_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = f"python-client-{client.replace('==', '-')}-{python_version}"
    folder = cache_root() / name
    python = folder / "bin" / "python"
    with exclusive(name):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(python), "-m", "pip", "install", "--quiet", client])
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


def run(
    python: Path, home: Path, client: str = REMOTING, /, **command: Any
) -> list[dict[str, Any]]:
    """Returns what one operation of the client reports. AssertionError when it fails.

    The client's log goes into the folder `home`.
    """
    home.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(python), str(_DRIVERS[client]), json.dumps(command)],
        env={**os.environ, "HOME": str(home)}, cwd=home,  # where it makes folders
        capture_output=True, text=True, timeout=_RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    ended = f"the Python client ended with {done.returncode}"
    assert done.returncode == 0, f"{ended}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
