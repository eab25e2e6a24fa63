# SPDX-License-Identifier: Apache-2.0
"""The shortcuts are used with the h2 and the hpack that they fit, and left out with others."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hpack.table import HeaderTable
from twisted.logger import capturedLogs, formatEvent

from txrocketmq.proxy.http2.header_decoder import HeaderDecoder
from txrocketmq.proxy.http2.plain_connection import PlainConnection
from txrocketmq.proxy.http2.shortcuts import ServerConnection
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
                "_update_encoding_context",
                "_assert_valid_table_size",
            )
        ),
        *(
            (ServerConnection, name)
            for name in (
                "_open_streams",
                "_frame_dispatch_table",
                "_receive_headers_frame",
                "_receive_data_frame",
                "_receive_window_update_frame",
                "incoming_buffer",
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
    literal = HeaderDecoder._literal

    def turned(self: Any, *arguments: Any) -> Any:
        name, value, *rest = literal(self, *arguments)
        return value, name, *rest

    monkeypatch.setattr(HeaderDecoder, "_literal", turned)
    assert connection_class() is PlainConnection


@pytest.mark.parametrize("name", ["get_by_index", "add"])
def test_with_another_table_they_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeaderTable, name, Missing())
    assert connection_class() is PlainConnection


def test_with_an_answer_that_is_not_heard_they_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ServerConnection, "answer", lambda self, number, data: True)
    assert connection_class() is PlainConnection
