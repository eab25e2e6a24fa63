# SPDX-License-Identifier: Apache-2.0
"""The first account of a standalone server, and addresses at which there has to be one."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from txrocketmq.access.auth.users import User
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.cli.servers import first_account
from txrocketmq.cli.servers.first_account import (
    FirstAccount,
    check_open,
    has_accounts,
    near_addresses,
)
from txrocketmq.remoting.settings.config_file import ConfigError


def test_the_secret_is_told_once() -> None:
    account = FirstAccount("ops")
    made = json.loads(account.settings()["initAuthenticationUser"])
    assert made["username"] == "ops"
    secret = made["password"]
    assert len(secret) == 32
    assert f"ROCKETMQ_SECRET_KEY={secret}" in account.told(User("ops", secret))
    later = account.told(User("ops", secret[::-1]))
    assert "was in the store already" in later
    assert secret not in later + repr(account)
    assert FirstAccount("ops").settings() != account.settings()


@pytest.mark.parametrize("key", ["authenticationEnabled", "aclEnable"])
def test_accounts_are_seen_however_they_are_switched_on(key: str) -> None:
    """As settings are read: in any case, and with blanks."""
    assert has_accounts({key: "true"})
    assert has_accounts({key: " TRUE "})
    assert not has_accounts({key: "false"})
    assert not has_accounts({})


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 256])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ConfigError, match="--account"):
        FirstAccount(name)


@pytest.mark.parametrize(
    ("host", "bind_address", "refused"),
    [
        ("127.0.0.1", "127.0.0.1", ""),
        ("::1", "127.0.0.1", ""),
        ("0.0.0.0", "0.0.0.0", "0.0.0.0"),
        ("127.0.0.1", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.3", "127.0.0.1", "10.1.2.3"),
    ],
)
def test_addresses_for_others(host: str, bind_address: str, refused: str) -> None:
    config = BrokerConfig(bind_address=bind_address)
    if refused:
        with pytest.raises(ConfigError, match=f"at {refused}, .*--account NAME.*--open"):
            check_open(host, config, is_open=False)
    else:
        check_open(host, config, is_open=False)
    check_open(host, config, is_open=True)
    guarded = BrokerConfig(bind_address=bind_address, authentication_enabled=True)
    check_open(host, guarded, is_open=False)


def test_a_host_by_name_is_near_at_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    def addresses(host: str, *_: Any, **__: Any) -> list[Any]:
        if host != "here.example":
            raise socket.gaierror(host)
        return [(2, 1, 6, "", ("10.1.2.3", 0)), (10, 1, 6, "", ("fe80::1%eth0", 0, 0, 2))]

    monkeypatch.setattr(first_account, "getaddrinfo", addresses)
    assert near_addresses("here.example") == "127.0.0.0/8;::1;10.1.2.3;fe80::1"
    assert near_addresses("nowhere.example") == near_addresses("localhost") == "127.0.0.0/8;::1"
