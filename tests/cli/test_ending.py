# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys


def test_what_is_buffered_for_a_reader_that_has_gone_is_forgotten() -> None:
    program = (
        "import os, sys; from txrocketmq.cli.ending import forget_stdout;"
        "sys.stdout.write('nobody reads this'); os.read(0, 1); forget_stdout()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
