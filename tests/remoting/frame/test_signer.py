# SPDX-License-Identifier: Apache-2.0
"""The signer, against the signature in the fewest words."""

from __future__ import annotations

import base64
import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.frame import signer as module
from txrocketmq.remoting.frame.credentials import signature
from txrocketmq.remoting.frame.signer import MAX_SHAPES, SIGNATURE, Signer, java_order

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
NAMES = st.one_of(
    st.sampled_from(["AccessKey", "Signature", "a", "b", "B", "\U0001f600", "\uffee"]), TEXTS
)


@given(st.dictionaries(NAMES, TEXTS, max_size=12), st.binary(max_size=200), TEXTS)
def test_it_signs_what_it_should(fields: dict[str, str], body: bytes, secret: str) -> None:
    signer = Signer(secret)
    expected = signature(fields, body, secret)
    assert signer.signature(fields, body) == expected
    assert signer.signature(fields, body) == expected  # the order of its fields is known now
    assert signer.accepts(fields, body, expected)
    assert not signer.accepts(fields, body, expected[:-2] + ("A=" if expected[-2] != "A" else "B="))
    assert not signer.accepts(fields, body, "")


def test_a_secret_longer_than_a_block_is_hashed_first() -> None:
    secret = "s" * 65
    expected = base64.b64encode(hmac.digest(secret.encode(), b"vbody", "sha1")).decode()
    assert Signer(secret).signature({"f": "v"}, b"body") == expected


def test_what_is_no_text_in_utf_8_counts_as_in_java() -> None:
    assert Signer("s").signature({"f": "\ud800"}, b"") == Signer("s").signature({"f": "?"}, b"")
    assert not Signer("s").accepts({}, b"", "\ud800")


def test_names_are_in_the_order_of_java() -> None:
    # U+FFEE is one unit of UTF-16, and the other character has two, the first of which is smaller.
    names = ["\uffee", "\U0001f600", "b", "B"]
    assert sorted(names, key=java_order) == ["B", "b", "\U0001f600", "\uffee"]
    values = {name: str(at) for at, name in enumerate(names)}
    expected = base64.b64encode(hmac.digest(b"k", b"3210", "sha1")).decode()
    assert Signer("k").signature(values, b"") == expected


def test_names_that_are_seen_once_do_not_fill_the_memory() -> None:
    signer = Signer("s")
    for number in range(3 * MAX_SHAPES):
        signer.signature({f"name{number}": ""}, b"")
    assert len(module._picks) <= MAX_SHAPES
    module._picks.clear()
    signer.signature({f"{number}": "" for number in range(1000)}, b"")
    signer.signature({"n" * 100_000: ""}, b"")
    assert not module._picks


def test_nothing_shows_the_secret() -> None:
    signer = Signer("hunter2")
    assert "hunter2" not in repr(signer)
    assert not hasattr(signer, "__dict__")


def test_the_hash_is_the_one_of_the_protocol() -> None:
    fields = {"AccessKey": "me", "topic": "T", SIGNATURE: "old"}
    digest = hmac.new(b"key", b"meT" + b"x", hashlib.sha1).digest()
    assert Signer("key").signature(fields, b"x") == base64.b64encode(digest).decode()
