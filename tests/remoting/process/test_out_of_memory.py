# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from txrocketmq.remoting.process.out_of_memory import ends_without_memory, is_out_of_memory

UNMAPPED = ImportError("x.so: failed to map segment from shared object")


UNSAID = SystemError("error return without exception set")


@pytest.mark.parametrize(
    "error", [MemoryError(), UNMAPPED, OSError(errno.ENOMEM, "no memory"), UNSAID]
)
def test_lack_of_memory_ends_the_process_with_one_sentence(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_out_of_memory(error)
    with pytest.raises(SystemExit) as ended, ends_without_memory("mqbroker"):
        raise error
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "mqbroker: there is not enough memory. Allow the process more address space"
        " (ulimit -v, or the limit of its service or container)\n"
    )


@pytest.mark.parametrize(
    "error", [ImportError("no module x"), OSError(errno.EIO, "broken"), SystemError("x")]
)
def test_other_failures_are_left_alone(error: Exception) -> None:
    with pytest.raises(type(error)), ends_without_memory("mqbroker"):
        raise error


RESERVED = """
from txrocketmq.remoting.host.memory import own_bytes
from txrocketmq.remoting.process.out_of_memory import ends_without_memory
own_bytes()
before = own_bytes()
with ends_without_memory("mqbroker"):
    print(own_bytes() - before)
"""


def test_what_is_kept_for_the_end_takes_no_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RESERVED], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 1 << 20


def test_what_goes_well_goes_on() -> None:
    with ends_without_memory("mqbroker"):
        pass
