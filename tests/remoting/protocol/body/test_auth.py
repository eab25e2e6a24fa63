# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.protocol.body import auth


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(auth, nested="PolicyEntryInfo PolicyInfo")


def test_secrets_are_not_shown() -> None:
    user = auth.UserInfo(username="u", password="hidden", user_type="Normal")  # noqa: S106
    account = auth.PlainAccessConfig(access_key="a", secret_key="hidden")  # noqa: S106
    assert "hidden" not in f"{user!r} {account!r} {user} {account}"
    assert b"hidden" in user.encode()
    assert b"hidden" in account.encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'["hidden"]', "UserInfo: an object is expected"),
        (b'"hidden"', "UserInfo: an object is expected"),
        (b'{"password":["hidden"]}', "UserInfo.password: a text is expected"),
        (b'{"password":{"hidden":"hidden"}}', "UserInfo.password: a text is expected"),
        (b'{"password":hidden}', "no JSON at character 12: a value is expected, not 'h'"),
        (b'{"password" "hidden"}', "no JSON at character 12: a colon is expected, not '\"'"),
        (b'{"username":"a" hidden}', "no JSON at character 16: a comma or } is expected, not 'h'"),
        (b"{}hidden", "no JSON at character 2: more after the end: 'h'"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(data: bytes, why: str) -> None:
    with pytest.raises(HeaderError) as wrong:
        auth.UserInfo.decode(data)
    assert str(wrong.value) == why
    with pytest.raises(HeaderError) as wrong:
        auth.AclConfig.decode(b'{"plainAccessConfigs":[{"secretKey":["hidden"]}]}')
    assert "secretKey: a text is expected" in str(wrong.value)
    assert "hidden" not in str(wrong.value)
