# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.access.acl.accounts import account, check_keys, config_of, unknown_members
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.permissions import DENY, PUB, SUB
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig

KEYS = {"accessKey": "someone", "secretKey": "secret-1"}


def test_an_account_is_what_its_members_say() -> None:
    each = account(
        config_of(
            KEYS
            | {
                "admin": "TRUE",
                "defaultTopicPerm": "PUB",
                "topicPerms": ["t=SUB"],
                "groupPerms": ["g=SUB"],
                "whiteRemoteAddress": "10.1.2.*",
            }
        )
    )
    assert each.is_admin
    assert not each.may_all
    assert each.has_white
    assert [each.owned(name) for name in ("t", "x", "%RETRY%g", "%RETRY%x")] == [
        SUB,
        PUB,
        SUB,
        DENY,
    ]


def test_what_is_left_out_denies() -> None:
    each = account(config_of(KEYS))
    assert not each.has_white
    assert (each.owned("t"), each.owned("%RETRY%g")) == (DENY, DENY)
    assert account(config_of(KEYS | {"admin": True})).may_all


def test_numbers_count_as_their_digits() -> None:
    config = config_of({"accessKey": 1234567, "secretKey": 12345678.5})
    assert (config.access_key, config.secret_key) == ("1234567", "12345678.5")
    assert config_of({"accessKey": True}).access_key == "true"


@pytest.mark.parametrize(
    "members",
    [
        {"admin": "perhaps"},
        {"secretKey": ["secret-1"]},
        {"topicPerms": "t=PUB"},
        {"topicPerms": [{"t": "PUB"}]},
        {"groupPerms": ["g"]},
        {"whiteRemoteAddress": "nowhere"},
        {"secretKey": ""},
        {"secretKey": "six-66"},
        {"secretKey": None},
    ],
)
def test_what_is_wrong_is_said_with_the_account_and_without_its_secret(members: Any) -> None:
    with pytest.raises(AclError) as raised:
        account(config_of(KEYS | members))
    assert "someone" in str(raised.value)
    assert "secret-1" not in str(raised.value)
    assert "six-66" not in str(raised.value)


def test_keys_are_longer_than_six() -> None:
    check_keys(PlainAccessConfig(access_key="1234567", secret_key="1234567"))
    for access, secret in (("123456", "1234567"), ("1234567", "123456"), (None, "1234567")):
        with pytest.raises(AclError, match="length should longer than 6"):
            check_keys(PlainAccessConfig(access_key=access, secret_key=secret))


def test_misspelt_members_are_found() -> None:
    assert unknown_members([*KEYS, "topicPerm"]) == [
        "unknown key topicPerm (did you mean topicPerms?)"
    ]


def test_no_text_shows_the_secret() -> None:
    assert "secret-1" not in repr(account(config_of(KEYS)))
    assert "secret-1" not in f"{[account(config_of(KEYS))]}"
