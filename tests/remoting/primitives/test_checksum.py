# SPDX-License-Identifier: Apache-2.0
"""Whichever library computes it, it is the CRC-32 of zlib."""

from __future__ import annotations

import importlib
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.primitives import checksum


@given(st.binary(max_size=300), st.integers(0, 20))
def test_it_is_that_of_zlib(data: bytes, repeated: int) -> None:
    data *= repeated
    assert checksum.crc32(data) == zlib.crc32(data)
    assert checksum.crc32(memoryview(data)) == zlib.crc32(data)


def test_zlib_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "isal.isal_zlib", None)
        assert importlib.reload(checksum).crc32 is zlib.crc32
    importlib.reload(checksum)
