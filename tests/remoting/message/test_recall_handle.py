# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message.recall_handle import RecallHandle, RecallHandleError

HANDLE = RecallHandle("T", "broker-a", "1700000001001", "7F0000010A1B18B4AAC2000000000001")
WORD = st.text(st.characters(exclude_characters=" ", exclude_categories=["Cs"]), min_size=1)


def test_the_originals_form() -> None:
    text = HANDLE.encode()
    assert text == urlsafe_b64encode(
        b"v1 T broker-a 1700000001001 7F0000010A1B18B4AAC2000000000001"
    ).decode()  # fmt: skip
    assert RecallHandle.decode(text) == HANDLE
    assert RecallHandle.decode(text.rstrip("=")) == HANDLE
    assert HANDLE.time_ms == 1_700_000_001_001


@given(st.builds(RecallHandle, WORD, WORD, WORD, WORD))
def test_what_is_encoded_is_decoded(handle: RecallHandle) -> None:
    assert RecallHandle.decode(handle.encode()) == handle


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "=",
        "a",
        "%",
        "AAAA",
        "djE",
        "djE=",
        HANDLE.encode() + "=",
        "+/+/",
        "ä" * 4,
        "A" * 9999,
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(RecallHandleError, match="recall handle is invalid"):
        RecallHandle.decode(text)


@pytest.mark.parametrize("raw", ["v2 a b 1 c", "v1 a b 1", "v1 a b 1 ", "v1", " v1 a b 1 c"])
def test_what_says_too_little(raw: str) -> None:
    with pytest.raises(RecallHandleError):
        RecallHandle.decode(urlsafe_b64encode(raw.encode()).decode())


@given(st.text())
def test_any_text(text: str) -> None:
    with contextlib.suppress(RecallHandleError):
        RecallHandle.decode(text)


@pytest.mark.parametrize("time", ["", "x", "-", "--1", "1.0", "9" * 30])
def test_times_that_are_none(time: str) -> None:
    assert HANDLE._replace(time=time).time_ms == -1
