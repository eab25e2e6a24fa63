# SPDX-License-Identifier: Apache-2.0
"""The settings of accounts, under the names of RocketMQ 5.

Counterpart of AuthConfig.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from txrocketmq.access.auth.users import User, UserType
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.frame.connection import Seal
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.settings.config_file import ConfigError, setting
from txrocketmq.remoting.settings.peers_config import PeersConfig

_PACKAGE: Final = "org.apache.rocketmq.auth."
_CLASSES: Final = {
    "authenticationProvider": ("authentication.provider.DefaultAuthenticationProvider",),
    "authenticationMetadataProvider": (
        "authentication.provider.LocalAuthenticationMetadataProvider",
    ),
    "authenticationStrategy": (
        "authentication.strategy.StatelessAuthenticationStrategy",
        "authentication.strategy.StatefulAuthenticationStrategy",
    ),
    "authorizationProvider": ("authorization.provider.DefaultAuthorizationProvider",),
    "authorizationMetadataProvider": ("authorization.provider.LocalAuthorizationMetadataProvider",),
    "authorizationStrategy": (
        "authorization.strategy.StatelessAuthorizationStrategy",
        "authorization.strategy.StatefulAuthorizationStrategy",
    ),
}
"""The classes of the original that each of these settings may name; there are no others here."""
_ALWAYS_CHECKED: Final = range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1)


class Credentials(NamedTuple):
    """With what a server signs the requests that it sends itself."""

    access_key: str
    secret_key: str
    security_token: str = ""

    def __repr__(self) -> str:
        """Leaves out the secrets, since this text may get into a log."""
        return f"Credentials({self.access_key!r})"


@dataclass(frozen=True)
class AuthConfig(PeersConfig):
    """The settings of accounts, and those of any server."""

    authentication_enabled: bool = setting(False)
    """Whether each request needs the signature of a user. The first user is made by
    initAuthenticationUser, and others by administrators."""
    authentication_provider: str = setting("")
    """The class that checks signatures in the original; its DefaultAuthenticationProvider is the
    only one that may be named."""
    authentication_metadata_provider: str = setting("")
    """The class that keeps users in the original; its LocalAuthenticationMetadataProvider is the
    only one that may be named, and need not be. If it is, there are users without
    authenticationEnabled as well, so that they can be made before they are needed."""
    authentication_strategy: str = setting("")
    """The class that decides in the original which requests are checked. Either of its two may be
    named; here, all requests are checked."""
    authentication_whitelist: str = setting("")
    """Codes of requests that need no signature, separated by commas. With authorizationEnabled they
    have to be in authorizationWhitelist as well, since nobody can be authorized whose name is not
    proven."""
    init_authentication_user: str = setting("", secret=True)
    """A user that may do everything, as `{"username":"...","password":"..."}`. It is created at the
    start if there is none of this name; one that there is does not change."""
    inner_client_authentication_credentials: str = setting("", secret=True)
    """The user with which the server signs the requests that it sends to other servers, as
    `{"accessKey":"...","secretKey":"..."}`. It is created like that of initAuthenticationUser."""
    authorization_enabled: bool = setting(False)
    """Whether a user that is not Super may only do what its policies allow, which needs
    `authenticationEnabled=true` as well."""
    authorization_provider: str = setting("")
    """The class that looks at policies in the original; its DefaultAuthorizationProvider is the
    only one that may be named."""
    authorization_metadata_provider: str = setting("")
    """The class that keeps policies in the original; its LocalAuthorizationMetadataProvider is the
    only one that may be named, and need not be."""
    authorization_strategy: str = setting("")
    """The class that decides in the original which requests are looked at. Either of its two may be
    named; here, it is all of them."""
    authorization_whitelist: str = setting("")
    """Codes of requests that need no policies, separated by commas."""
    migrate_auth_from_v1_enabled: bool = setting(False)
    """Whether the accounts of RocketMQ 4 in `conf/plain_acl.yml` and `conf/acl` of rocketmqHome
    become users at the start, unless there are users of these names."""

    def __post_init__(self) -> None:
        """Raises ConfigError if the settings cannot be used."""
        PeersConfig.__post_init__(self)
        for key, names in _CLASSES.items():
            check_class(key, getattr(self, _FIELDS[key]), [_PACKAGE + name for name in names])
        check_signed(
            authorization=self.authorization_enabled, authentication=self.authentication_enabled
        )
        self.open_codes(authorization=False)
        self.open_codes(authorization=True)
        self.first_user()
        self.credentials()

    @property
    def has_users(self) -> bool:
        """Whether users can be made."""
        return self.authentication_enabled or bool(self.authentication_metadata_provider.strip())

    def open_codes(self, *, authorization: bool) -> frozenset[int]:
        """Returns the codes of authorizationWhitelist, or of authenticationWhitelist."""
        key = "authorizationWhitelist" if authorization else "authenticationWhitelist"
        codes = set()
        for text in getattr(self, _FIELDS[key]).split(","):
            code = text.strip()
            if not code:
                continue
            if not (code.isascii() and code.isdecimal() and len(code) < 10):
                raise ConfigError(f"{key} must be codes of requests like 105,34, not {code!r}")
            if int(code) in _ALWAYS_CHECKED:
                raise ConfigError(f"{key} cannot have {code}: who changes accounts needs one")
            codes.add(int(code))
        return frozenset(codes)

    def first_user(self) -> User | None:
        """Returns the user of initAuthenticationUser, if it is given."""
        name, password = _pair(
            "initAuthenticationUser", self.init_authentication_user, "username", "password"
        )
        return User(name, password, UserType.SUPER) if name else None

    def credentials(self) -> Credentials | None:
        """Returns what innerClientAuthenticationCredentials has, if it is given."""
        return credentials_of(self.inner_client_authentication_credentials)

    def named_users(self) -> dict[str, User]:
        """Returns the Super users that settings name, by the key of the setting."""
        inner = self.credentials()
        users = {
            "initAuthenticationUser": self.first_user(),
            "innerClientAuthenticationCredentials": inner and User(*inner[:2], UserType.SUPER),
        }
        return {key: user for key, user in users.items() if user is not None}

    def seal(self) -> Seal | None:
        """Returns what signs the requests that the server sends itself, if it has an account."""
        credentials = self.credentials()
        return None if credentials is None else seal_of(*credentials)


_FIELDS: Final = {
    "authenticationProvider": "authentication_provider",
    "authenticationMetadataProvider": "authentication_metadata_provider",
    "authenticationStrategy": "authentication_strategy",
    "authenticationWhitelist": "authentication_whitelist",
    "authorizationProvider": "authorization_provider",
    "authorizationMetadataProvider": "authorization_metadata_provider",
    "authorizationStrategy": "authorization_strategy",
    "authorizationWhitelist": "authorization_whitelist",
}


def check_class(key: str, given: str, known: Sequence[str]) -> None:
    """Raises ConfigError if a setting names another class than those that are served."""
    name = given.strip()
    if name and name not in known:
        raise ConfigError(
            f"{key} can only be {' or '.join(known)}, which may be left out, not {name!r}"
        )


def check_signed(*, authorization: bool, authentication: bool) -> None:
    """Raises ConfigError if permissions would be asked of people whom nothing identifies."""
    if authorization and not authentication:
        raise ConfigError(
            "authorizationEnabled needs authenticationEnabled=true: without signatures,"
            " everybody could take any name"
        )


def credentials_of(text: str) -> Credentials | None:
    """Returns what innerClientAuthenticationCredentials has, if it is given. Raises ConfigError."""
    key = "innerClientAuthenticationCredentials"
    access_key, secret_key = _pair(key, text, "accessKey", "secretKey")
    if not access_key:
        return None
    return Credentials(access_key, secret_key, _texts(key, text).get("securityToken") or "")


def _texts(key: str, text: str) -> dict[str, str]:
    """Reads a JSON object of texts. The text itself is a secret, so no error shows it."""
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ConfigError(f"{key} is no JSON object; write it as the documentation shows")
    return {name: value for name, value in content.items() if isinstance(value, str)}


def _pair(key: str, text: str, first: str, second: str) -> tuple[str, str]:
    if not text.strip():
        return "", ""
    found = _texts(key, text)
    for name in (first, second):
        if not found.get(name, "").strip():
            raise ConfigError(
                f'{key} has no {name}: write it as {{"{first}":"...","{second}":"..."}}'
            )
    return found[first], found[second]
