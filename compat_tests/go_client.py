# SPDX-License-Identifier: Apache-2.0
"""Apache's Go client: the program in ``clients/go``, built once into the cache."""

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from compat_tests.cache import cache_root, exclusive

_SOURCES = Path(__file__).parent / "clients" / "go"
_BUILD_TIMEOUT_S = 300
_RUN_TIMEOUT_S = 90


class GoUnavailable(Exception):
    """The Go client is not in the cache and cannot be built; the message says why."""


def build(*, tls: bool = False) -> Path:
    """Returns the program, built again if its sources have changed. Raises GoUnavailable.

    With `tls`, it is built from a commit of the client that can encrypt, and not from a release.
    """
    modules = "tls" if tls else "go"
    sources = [_SOURCES / f"{modules}.mod", _SOURCES / f"{modules}.sum"]
    sources += sorted(_SOURCES.glob("*.go"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    program = cache_root() / f"go-client-{digest}"
    options = [f"-modfile={modules}.mod", *(["-tags=tls"] if tls else [])]
    with exclusive("go"):
        if not program.exists():
            _build(program, options)
    return program


def _build(program: Path, options: Sequence[str]) -> None:
    go = shutil.which("go")
    if go is None:
        raise GoUnavailable("the Go client is not built, and Go is not installed")
    fresh = program.with_suffix(".partial")
    command = [go, "build", "-buildvcs=false", *options, "-o", str(fresh), "."]
    done = subprocess.run(
        command, cwd=_SOURCES, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise GoUnavailable(f"the Go client cannot be built: {done.stderr[-1000:]}")
    fresh.rename(program)


class GoClient:
    """One run of the program, which carries out one operation."""

    def __init__(self, program: Path, **command: Any) -> None:
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the object
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=self._output, stderr=self._log, text=True
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command))
        self._process.stdin.flush()  # left open, since the program ends with its input

    def events(self) -> list[dict[str, Any]]:
        """Returns its reports up to its end. AssertionError if it fails or does not end in time."""
        try:
            self._process.wait(_RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        output, log = _whole(self._output), _whole(self._log)
        code = self._process.returncode
        assert code == 0, f"the Go client ended with {code}:\n{output[-4000:]}\n{log[-4000:]}"
        return [json.loads(line) for line in output.splitlines()]


def _whole(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
