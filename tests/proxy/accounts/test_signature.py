# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.accounts.signing import DATE, signed
from txrocketmq.access.auth.users import User
from txrocketmq.proxy.accounts.signature import CallSignature, UnreadableSignature

HEX = "00" * 20


def read(authorization: str, date: str = DATE) -> CallSignature:
    return CallSignature.read({"authorization": authorization, "x-mq-date-time": date})


def test_a_signature_is_that_of_the_user_over_the_time() -> None:
    its = CallSignature.read(signed("alice", "secret"))
    assert (its.user, its.content) == ("alice", DATE.encode())
    assert User("alice", "secret").signer.accepts({}, its.content, its.signature)
    assert not User("alice", "other").signer.accepts({}, its.content, its.signature)


def test_a_call_without_a_signature_is_of_nobody() -> None:
    assert CallSignature.read({}).user == ""
    assert CallSignature.read({"x-mq-date-time": DATE}).user == ""
    assert read(f"MQv2-HMAC-SHA1 Signature={HEX}").user == ""


def test_what_clients_add_to_a_name_does_not_count() -> None:
    assert read(f"x Credential=alice/region/RocketMQ,Signature={HEX.upper()}").user == "alice"
    assert read("x Credential=alice,,").user == "alice"


@pytest.mark.parametrize(
    ("authorization", "date", "why"),
    [
        ("x Credential=a", "", "datetime is null."),
        ("Credential=a", DATE, "authentication header is incorrect."),
        ("x Credential", DATE, "authentication keyValues length is incorrect, actual length=1."),
        ("x ", DATE, "authentication keyValues length is incorrect, actual length=1."),
        ("x Credential=/", DATE, "authentication credential length is incorrect, actual length=0."),
        ("x Signature=xyz", DATE, "create authentication context error."),
        ("x Signature=abc", DATE, "create authentication context error."),
        ("x Signature=a b c ", DATE, "create authentication context error."),
    ],
)
def test_texts_are_those_of_the_original(authorization: str, date: str, why: str) -> None:
    with pytest.raises(UnreadableSignature) as error:
        read(authorization, date)
    assert str(error.value) == why


@given(st.text(), st.text())
def test_nothing_else_is_raised(authorization: str, date: str) -> None:
    try:
        its = read(authorization, date)
    except UnreadableSignature:
        return
    assert not User("alice", "secret").signer.accepts({}, its.content, its.signature)


@given(st.text(alphabet="Credntial=,/ SgauexMQ0123456789abf-"))
def test_nor_for_texts_that_are_nearly_right(text: str) -> None:
    test_nothing_else_is_raised.hypothesis.inner_test("MQv2-HMAC-SHA1 " + text, DATE)  # type: ignore[attr-defined]
