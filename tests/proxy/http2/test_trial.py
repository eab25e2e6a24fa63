# SPDX-License-Identifier: Apache-2.0
"""The shortcuts are used with the h2 and the hpack that they fit, and left out with others."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from twisted.logger import capturedLogs, formatEvent

from txrocketmq.proxy.http2.plain_connection import PlainConnection
from txrocketmq.proxy.http2.shortcuts import HeaderDecoder, ServerConnection
from txrocketmq.proxy.http2.trial import connection_class


class Missing:
    """A name that another version does not have."""

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError("there is no such name")

    def __set__(self, instance: object, value: object) -> None:
        """Keeps nothing, so that it is missing all the same."""


def test_they_fit_what_is_installed() -> None:
    with capturedLogs() as logs:
        assert connection_class() is ServerConnection
    assert logs == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(
            (HeaderDecoder, name)
            for name in (
                "_decode_indexed",
                "_decode_literal_index",
                "_decode_literal_no_index",
                "_update_encoding_context",
                "_assert_valid_table_size",
            )
        ),
        *(
            (ServerConnection, name)
            for name in (
                "_open_streams",
                "_frame_dispatch_table",
                "_prepare_for_sending",
                "_stream_is_closed_by_reset",
            )
        ),
    ],
)
def test_with_a_name_missing_they_are_left_out(
    kind: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, name, Missing(), raising=False)
    with capturedLogs() as logs:
        assert connection_class() is PlainConnection
    (event,) = logs
    assert "the shortcuts do not fit h2" in formatEvent(event)


def test_with_a_module_missing_they_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "txrocketmq.proxy.http2.shortcuts", None)
    assert connection_class() is PlainConnection


def test_with_a_name_of_another_meaning_they_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    literal = HeaderDecoder._decode_literal_index

    def turned(self: Any, data: bytes) -> Any:
        (name, value), used = literal(self, data)
        return (value, name), used

    monkeypatch.setattr(HeaderDecoder, "_decode_literal_index", turned)
    assert connection_class() is PlainConnection


def test_with_an_answer_that_is_not_heard_they_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ServerConnection, "answer", lambda self, number, data: True)
    assert connection_class() is PlainConnection
