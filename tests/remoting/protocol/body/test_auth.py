# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.body import auth


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(auth, nested="PolicyEntryInfo PolicyInfo")


def test_secrets_are_not_shown() -> None:
    user = auth.UserInfo(username="u", password="hidden", user_type="Normal")  # noqa: S106
    account = auth.PlainAccessConfig(access_key="a", secret_key="hidden")  # noqa: S106
    assert "hidden" not in f"{user!r} {account!r} {user} {account}"
    assert b"hidden" in user.encode()
    assert b"hidden" in account.encode()
