# SPDX-License-Identifier: Apache-2.0
"""Signatures, and the namespace beside them."""

from __future__ import annotations

import pytest

from txrocketmq.remoting.frame.credentials import seal_of, signature


def test_the_signature_is_an_hmac_of_the_values_in_the_order_of_their_names() -> None:
    fields = {"b": "fox jumps over", "a": "The quick brown ", "Signature": "not part of it"}
    # HMAC-SHA1 with "key" of "The quick brown fox jumps over the lazy dog", as published
    assert signature(fields, b" the lazy dog", "key") == "3nybhbi3iqa8ino29wqQcBydtNk="


def test_a_request_is_signed() -> None:
    seal = seal_of("me", "key", "tok")
    assert seal is not None
    fields = {"topic": "T"}
    seal(fields, b"x")
    assert fields["AccessKey"] == "me"
    assert fields["SecurityToken"] == "tok"
    assert fields["Signature"] == signature({**fields}, b"x", "key")


def test_a_namespace_of_version_2_travels_beside_the_names() -> None:
    seal = seal_of("", "", namespace_v2="ns")
    assert seal is not None
    fields: dict[str, str] = {}
    seal(fields, b"")
    assert fields == {"nsd": "true", "ns": "ns"}


def test_without_either_nothing_is_done() -> None:
    assert seal_of("", "") is None


def test_one_key_alone_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="but secret_key is not given"):
        seal_of("me", "")
    with pytest.raises(ValueError, match="but access_key is not given"):
        seal_of("", "x")
