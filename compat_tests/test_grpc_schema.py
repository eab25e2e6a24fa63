# SPDX-License-Identifier: Apache-2.0
"""The definitions of the official Python gRPC client are the golden ones, and live beside ours."""

import os
import subprocess
from pathlib import Path

import pytest

from compat_tests.python_client import GRPC, PythonClientUnavailable, install

_ROOT = Path(__file__).parents[1]
_GOLDEN = _ROOT / "tests" / "golden" / "grpc" / f"{GRPC.replace('==', '-')}.json"


@pytest.mark.timeout(400)
def test_the_definitions_are_golden_and_ours_may_be_in_the_same_process() -> None:
    try:
        python = install(GRPC)
    except PythonClientUnavailable as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [str(python), str(_ROOT / "compat_tests/clients/python/grpc_descriptors.py")],
        env={**os.environ, "PYTHONPATH": str(_ROOT / "typings")},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == _GOLDEN.read_text("utf-8")
