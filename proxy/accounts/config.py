# SPDX-License-Identifier: Apache-2.0
"""The settings of accounts at the proxy, under the names of rmq-proxy.json.

Counterpart of AuthConfig, of which the proxy reads the same file as its own settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txrocketmq.access.auth.settings import (
    Credentials,
    check_class,
    check_signed,
    credentials_of,
)
from txrocketmq.remoting.frame.connection import Seal
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.settings.config_file import ConfigError, setting

_AUTH: Final = "org.apache.rocketmq.auth."
_PROXY: Final = "org.apache.rocketmq.proxy.auth."
_CLASSES: Final = {
    "authenticationProvider": (_AUTH + "authentication.provider.DefaultAuthenticationProvider",),
    "authenticationMetadataProvider": (_PROXY + "ProxyAuthenticationMetadataProvider",),
    "authenticationStrategy": (
        _AUTH + "authentication.strategy.StatelessAuthenticationStrategy",
        _AUTH + "authentication.strategy.StatefulAuthenticationStrategy",
    ),
    "authorizationProvider": (_AUTH + "authorization.provider.DefaultAuthorizationProvider",),
    "authorizationMetadataProvider": (_PROXY + "ProxyAuthorizationMetadataProvider",),
    "authorizationStrategy": (
        _AUTH + "authorization.strategy.StatelessAuthorizationStrategy",
        _AUTH + "authorization.strategy.StatefulAuthorizationStrategy",
    ),
}
"""The classes of the original that each of these settings may name; there are no others here."""
PACKAGE: Final = "apache.rocketmq.v2."
"""What names of requests begin with in the lists of those that need no account."""
NO_CREDENTIALS: Final = (
    'needs innerClientAuthenticationCredentials={"accessKey":"...","secretKey":"..."}: it is the'
    " account of a Super user, with which the proxy signs what it asks brokers for"
)


@dataclass(frozen=True, slots=True)
class AccountsConfig:
    """The settings of accounts. Times are in seconds."""

    authentication_enabled: bool = setting(False)
    """Whether each call needs the signature of a user. Users are those of the brokers."""
    authentication_provider: str = setting("")
    """The class that checks signatures in the original; its DefaultAuthenticationProvider is the
    only one that may be named."""
    authentication_metadata_provider: str = setting("")
    """The class for users in the original; its ProxyAuthenticationMetadataProvider, which
    asks brokers for them, is the only one that may be named, and need not be."""
    authentication_strategy: str = setting("")
    """The class that decides in the original which calls are checked. Either of its two may be
    named; here, all calls are checked."""
    authentication_whitelist: str = setting("")
    """Calls that need no signature, by the names of their requests, such as
    `apache.rocketmq.v2.HeartbeatRequest`, separated by commas. With authorizationEnabled they have
    to be in authorizationWhitelist as well."""
    init_authentication_user: str = setting("", effect=False, secret=True)
    """Read; users are made at brokers, as with the original's proxy."""
    inner_client_authentication_credentials: str = setting("", secret=True)
    """The user with which the proxy signs what it asks name servers and brokers for, as
    `{"accessKey":"...","secretKey":"..."}`. Brokers tell passwords to Super users only."""
    enable_acl_rpc_hook_for_cluster_mode: bool = setting(False)
    """Whether it is an error if innerClientAuthenticationCredentials is not given. If it is given,
    the proxy signs, whatever is said here; the original does so if this is `true`."""
    authorization_enabled: bool = setting(False)
    """Whether a user that is not Super may only do what its policies allow, which needs
    `authenticationEnabled=true` as well."""
    authorization_provider: str = setting("")
    """The class that looks at policies in the original; its DefaultAuthorizationProvider is the
    only one that may be named."""
    authorization_metadata_provider: str = setting("")
    """The class for policies in the original; its ProxyAuthorizationMetadataProvider, which
    asks brokers for them, is the only one that may be named, and need not be."""
    authorization_strategy: str = setting("")
    """The class that decides in the original which calls are looked at. Either of its two may be
    named; here, it is all of them."""
    authorization_whitelist: str = setting("")
    """Calls that need no policies, by the names of their requests, separated by commas."""
    user_cache_expired_seconds: int = setting(300, least=1)
    """After how many seconds without use a user is forgotten."""
    user_cache_refresh_seconds: int = setting(20, least=1)
    """After how many seconds a user is asked for again."""
    acl_cache_expired_seconds: int = setting(300, least=1)
    """After how many seconds without use the policies of a user are forgotten."""
    acl_cache_refresh_seconds: int = setting(20, least=1)
    """After how many seconds the policies of a user are asked for again."""

    def __post_init__(self) -> None:
        """Raises ConfigError if the settings cannot be used."""
        given = {
            "authenticationProvider": self.authentication_provider,
            "authenticationMetadataProvider": self.authentication_metadata_provider,
            "authenticationStrategy": self.authentication_strategy,
            "authorizationProvider": self.authorization_provider,
            "authorizationMetadataProvider": self.authorization_metadata_provider,
            "authorizationStrategy": self.authorization_strategy,
        }
        for key, text in given.items():
            check_class(key, text, _CLASSES[key])
        check_signed(
            authorization=self.authorization_enabled, authentication=self.authentication_enabled
        )
        self.open_calls(authorization=False)
        self.open_calls(authorization=True)
        if self.credentials() is None and self.enable_acl_rpc_hook_for_cluster_mode:
            raise ConfigError(f"enableAclRpcHookForClusterMode {NO_CREDENTIALS}")

    def open_calls(self, *, authorization: bool) -> frozenset[str]:
        """Returns the names of requests in authorizationWhitelist, or authenticationWhitelist."""
        key = "authorizationWhitelist" if authorization else "authenticationWhitelist"
        text = self.authorization_whitelist if authorization else self.authentication_whitelist
        names = {name for each in text.split(",") if (name := each.strip())}
        for name in sorted(names):
            if not (name.startswith(PACKAGE) or (name.isascii() and name.isdecimal())):
                raise ConfigError(
                    f"{key} must be names of requests like {PACKAGE}HeartbeatRequest, not {name!r}"
                )
        return frozenset(name.removeprefix(PACKAGE) for name in names if name.startswith(PACKAGE))

    def credentials(self) -> Credentials | None:
        """Returns what innerClientAuthenticationCredentials has, if it is given."""
        return credentials_of(self.inner_client_authentication_credentials)

    def seal(self) -> Seal | None:
        """Returns what signs the requests that the proxy sends itself, if it has an account."""
        credentials = self.credentials()
        return None if credentials is None else seal_of(*credentials)
