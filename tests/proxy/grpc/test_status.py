# SPDX-License-Identifier: Apache-2.0
"""Statuses, and their texts in headers."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus, percent_encoded


def test_the_numbers_are_those_of_grpc() -> None:
    assert [int(each) for each in GrpcStatus] == list(range(17))
    assert (GrpcStatus.DEADLINE_EXCEEDED, GrpcStatus.UNIMPLEMENTED) == (4, 12)
    assert (GrpcStatus.INTERNAL, GrpcStatus.UNAVAILABLE) == (13, 14)


def test_an_error_has_a_text() -> None:
    error = GrpcError(GrpcStatus.NOT_FOUND, "gone")
    assert (error.status, error.text, str(error)) == (GrpcStatus.NOT_FOUND, "gone", "gone")


@pytest.mark.parametrize(
    ("text", "encoded"), [("plain text", "plain text"), ("100 %\n", "100 %25%0A"), ("ö", "%C3%B6")]
)
def test_texts_are_percent_encoded(text: str, encoded: str) -> None:
    assert percent_encoded(text) == encoded


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back(text: str) -> None:
    encoded = percent_encoded(text)
    assert all(" " <= each <= "~" for each in encoded)
    assert unquote(encoded) == text
