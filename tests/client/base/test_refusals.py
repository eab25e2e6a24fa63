# SPDX-License-Identifier: Apache-2.0
"""What servers say of accounts, in the words of both releases."""

from __future__ import annotations

import pytest

from txrocketmq.client.base.errors import AdminRefused, MQBrokerError
from txrocketmq.client.base.refusals import refusal_of

STACK = (
    ", org.apache.rocketmq.acl.plain.PlainPermissionManager.validate(PlainPermissionManager.java:9)"
)
ACL_1 = "org.apache.rocketmq.acl.common.AclException: "


@pytest.mark.parametrize(
    ("code", "remark", "account", "resource", "address", "advice"),
    [
        (
            16,
            "User:al ice has no permission to access Topic:T from 10.0.0.1, no matched policies.",
            "al ice", "Topic:T", "10.0.0.1",
            "txrocketmq policies add al ice Topic:T --allow",
        ),
        (
            16,
            "User:bob has no permission to access Group:g from ::1, the decision is deny.",
            "bob", "Group:g", "::1", "txrocketmq policies test bob ACTION Group:g --from ::1",
        ),
        (16, "username cannot be null.", "", "", "", "give access_key and secret_key"),
        (16, "User:x is not found.", "x", "", "", "has no account x"),
        (16, "User:x not found.", "x", "", "", "has no account x"),
        (16, "User:{x} is disabled.", "{x}", "", "", "accounts change {x} --enable"),
        (16, "The user is existed", "", "", "", "choose another name"),
        (16, "The subject of User:x is not exist.", "", "", "", "create the account first"),
        (16, "The resource is null.", "", "", "", "a resource is Topic:NAME"),
        (16, "The source ip is invalid.", "", "", "", "a network such as 10.0.0.0/8"),
        (16, "password can not be blank", "", "", "", "give a password"),
        (1, "The super user can only be create by super user", "", "", "", "of the type Super"),
        (16, "check signature failed.", "", "", "", "the secret key of the account is not"),
        (1, f"{ACL_1}No accessKey is configured{STACK}", "", "", "", "give access_key"),
        (1, f"{ACL_1}No acl config for x{STACK}", "x", "", "", "has no account x"),
        (1, f"{ACL_1}No acl config for x", "x", "", "", "has no account x"),
        (
            1, f"{ACL_1}Check signature failed for accessKey=x{STACK}", "x", "", "",
            "the secret key of account x is not",
        ),
        (
            1, f"{ACL_1}Need admin permission for request code=17, but accessKey=x is not{STACK}",
            "x", "", "", "admin: true",
        ),
        (
            1, f"{ACL_1}No default permission for topic:T{STACK}", "", "topic:T", "",
            "topicPerms",
        ),
    ],
)  # fmt: skip
def test_what_is_told(
    code: int, remark: str, account: str, resource: str, address: str, advice: str
) -> None:
    refusal = refusal_of(code, remark)
    assert refusal is not None
    assert (refusal.account, refusal.resource, refusal.address) == (account, resource, address)
    assert advice in refusal.advice
    assert ACL_1 not in refusal.why
    assert STACK not in refusal.why


@pytest.mark.parametrize(
    ("code", "remark"),
    [
        (16, "the topic is read-only"),
        (16, None),
        (1, "check signature failed."),
        (1, None),
        (0, ""),
    ],
)
def test_other_answers_are_none(code: int, remark: str | None) -> None:
    assert refusal_of(code, remark) is None


def test_errors_say_it() -> None:
    error = MQBrokerError(1, f"{ACL_1}Check signature failed for accessKey=x{STACK}", "b:1")
    assert str(AdminRefused("deleting topic T", error)) == (
        "deleting topic T failed: b:1 answered SYSTEM_ERROR (1): Check signature failed for"
        " accessKey=x; the secret key of account x is not the one that the server has, or the"
        " request was changed on its way"
    )
    assert error.refusal is not None
    assert error.refusal.account == "x"
