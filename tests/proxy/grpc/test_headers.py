# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.proxy.grpc.headers import Headers


def test_headers_are_texts_by_name() -> None:
    headers = Headers(
        [(b"a", b"1"), (b"b", "\xf6".encode()), (b"a", b"2"), (b"c", b"\xff"), (b"d", b"")]
    )
    assert [headers.get(name) for name in "abcd"] == ["2", "\xf6", "\ufffd", ""]
    assert (headers.get("e"), headers.get("e", "none")) == ("", "none")
