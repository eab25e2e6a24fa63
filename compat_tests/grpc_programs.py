# SPDX-License-Identifier: Apache-2.0
"""Apache's gRPC clients for Go, Node.js and Rust, which are built into the cache."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from compat_tests.cache import cache_root, exclusive

_PROGRAMS = Path(__file__).parent / "clients"
_BUILD_TIMEOUT_S = 1_000
_RUN_TIMEOUT_S = 120


class ProgramUnavailable(Exception):
    """A program is not in the cache and cannot be made; the message says why."""


def _made(name: str, tool: str, command: list[str]) -> Path:
    """Returns the folder in which a command was run once on a copy of a program's sources."""
    sources = sorted((_PROGRAMS / name).iterdir())
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:16]
    folder = cache_root() / f"{name}-{digest}"
    with exclusive(name):
        if (folder / "complete").exists():
            return folder
        if shutil.which(tool) is None:
            raise ProgramUnavailable(f"{name} is not in the cache, and {tool} is not installed")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(_PROGRAMS / name, folder)
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise ProgramUnavailable(f"{name} cannot be made: {done.stderr[-1000:]}")
        (folder / "complete").touch()
    return folder


def go() -> list[str]:
    """Returns the command of the Go client. Raises ProgramUnavailable."""
    folder = _made("grpc_go", "go", ["go", "build", "-buildvcs=false", "-o", "driver", "."])
    return [str(folder / "driver")]


def node() -> list[str]:
    """Returns the command of the Node.js client. Raises ProgramUnavailable."""
    folder = _made("grpc_node", "npm", ["npm", "ci", "--ignore-scripts", "--no-audit"])
    return ["node", str(folder / "driver.js")]


def rust() -> list[str]:
    """Returns the command of the Rust client. Raises ProgramUnavailable."""
    folder = _made("grpc_rust", "cargo", ["cargo", "build", "--locked", "--quiet"])
    return [str(folder / "target" / "debug" / "driver")]


def events(program: list[str], home: Path, **command: Any) -> list[dict[str, Any]]:
    """Returns what a program reports. AssertionError if it fails; its log goes into `home`."""
    done = subprocess.run(
        [*program, json.dumps(command)],
        env={**os.environ, "HOME": str(home)}, cwd=home,
        capture_output=True, text=True, timeout=_RUN_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
