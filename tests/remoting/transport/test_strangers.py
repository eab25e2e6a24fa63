# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.remoting.transport.strangers import stranger


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"),
        (b"GET /metrics HTTP/1.1\r\n", "HTTP"),
        (b"POST / HTTP/1.1\r\n", "HTTP"),
    ],
)
def test_a_hello_is_known(data: bytes, name: str) -> None:
    assert stranger(data).startswith(f"it speaks {name} to the remoting port; ")


@pytest.mark.parametrize("data", [b"", b"\x16", b"\x00\x00\x00\x10", b"GETTING", b"\xff" * 20])
def test_anything_else_is_not(data: bytes) -> None:
    assert stranger(data) == ""
