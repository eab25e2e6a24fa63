# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol import query


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(query, ours="QueryMessageRequestHeader._UNIQUE_KEY_QUERY")


def test_the_mark_of_a_query_by_unique_key() -> None:
    header = query.QueryMessageRequestHeader(
        topic="t", key="k", max_num=32, begin_timestamp=0, end_timestamp=2**63 - 1
    )
    assert "_UNIQUE_KEY_QUERY" not in header.encode()
    marked = {**header.encode(), "_UNIQUE_KEY_QUERY": "true"}
    assert query.QueryMessageRequestHeader.decode(marked).unique_key_query is True
