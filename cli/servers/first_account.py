# SPDX-License-Identifier: Apache-2.0
"""The account that `txrocketmq standalone --account NAME` makes, and when there has to be one.

The secret is made here and printed once. The broker keeps it with the account, and a later start
with the same store prints none: the account is there already.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from socket import SOCK_STREAM, getaddrinfo
from typing import Final

from txrocketmq.access.auth.users import User
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.primitives.networks import is_loopback
from txrocketmq.remoting.settings.config_file import LIST_SEPARATOR, ConfigError

_BYTES: Final = 24
_LOOPBACK: Final = ("127.0.0.0/8", "::1")
_SHOWN: Final = """\

Account {name}, which may do everything. The secret is not shown again:
  export ROCKETMQ_ACCESS_KEY={name}
  export ROCKETMQ_SECRET_KEY={secret}
"""
_KNOWN: Final = """\

Account {name} was in the store already, and has the secret that it had.
"""


NO_PROXY: Final = (
    "the accounts of RocketMQ 4 (aclEnable) are none for gRPC: use authenticationEnabled, and"
    " migrateAuthFromV1Enabled takes them over"
)
"""Why clients of gRPC are not served then."""


def has_accounts(settings: Mapping[str, str]) -> bool:
    """Returns whether clients need an account at a broker with these settings."""
    return _is_true(settings, "authenticationEnabled") or has_plain_accounts(settings)


def has_plain_accounts(settings: Mapping[str, str]) -> bool:
    """Returns whether these are accounts of RocketMQ 4, which the proxy does not serve."""
    return _is_true(settings, "aclEnable")


def _is_true(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "").strip().lower() == "true"


def new_secret() -> str:
    """Returns a new secret: 32 letters, digits, hyphens and underscores."""
    return secrets.token_urlsafe(_BYTES)


class FirstAccount:
    """A Super account with a new secret, which a broker creates unless it has one of this name."""

    def __init__(self, name: str) -> None:
        """Raises ConfigError for a name that cannot be one."""
        if not name.strip() or not name.isprintable() or len(name) > 255:
            raise ConfigError(f"--account {name!r}: give a name of 1 to 255 printable characters")
        self.name = name
        self._secret = new_secret()

    def __repr__(self) -> str:
        """Leaves out the secret."""
        return f"FirstAccount({self.name!r})"

    def settings(self) -> Mapping[str, str]:
        """Returns the settings of a broker that asks for accounts and creates this one."""
        user = {"username": self.name, "password": self._secret}
        return {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "initAuthenticationUser": json.dumps(user, separators=(",", ":")),
        }

    def told(self, known: User | None) -> str:
        """Returns what is printed when the broker runs; `known` is the account that it has."""
        is_new = known is not None and known.password == self._secret
        return (_SHOWN if is_new else _KNOWN).format(name=self.name, secret=self._secret)


def near_addresses(told: str) -> str:
    """Returns the value of `adminAddresses` for this machine, whose clients use the address `told`.

    Without accounts, whoever is elsewhere cannot delete topics or change settings.
    """
    if is_loopback(told):
        return LIST_SEPARATOR.join(_LOOPBACK)
    try:  # a name stands for all its addresses
        found = {
            str(each[4][0]).partition("%")[0] for each in getaddrinfo(told, None, type=SOCK_STREAM)
        }
    except OSError:
        found = set()
    return LIST_SEPARATOR.join((*_LOOPBACK, *sorted(found)))


def check_open(host: str, config: BrokerConfig, *, is_open: bool) -> None:
    """Raises ConfigError if everybody in a network could do everything, unless that is wanted."""
    hosts = [each for each in (host, config.bind_address) if not is_loopback(each)]
    if hosts and not is_open and not (config.authentication_enabled or config.acl_enable):
        raise ConfigError(
            f"at {hosts[0]}, everybody who reaches this machine could read, write and delete"
            " everything: give --account NAME, so that clients need an account, or --open if that"
            " is what you want"
        )
