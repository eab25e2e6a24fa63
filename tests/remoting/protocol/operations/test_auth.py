# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.operations import auth

KEY = "12345678"


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    # mqadmin leaves the path out when there is one file; the broker takes its own then.
    same_headers_as_the_original(
        auth, lenient="UpdateGlobalWhiteAddrsConfigRequestHeader.aclFileFullPath"
    )


def test_the_secret_of_an_account_is_not_shown() -> None:
    header = auth.CreateAccessConfigRequestHeader(access_key="shop", secret_key=KEY)
    assert repr(header) == "CreateAccessConfigRequestHeader('shop', admin=False)"
