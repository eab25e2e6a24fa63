# SPDX-License-Identifier: Apache-2.0
"""The settings of accounts: what is taken, and what stops the start."""

from __future__ import annotations

import pytest

from tests.pages import blocks
from txrocketmq.access.auth.settings import AuthConfig
from txrocketmq.access.auth.users import User, UserType
from txrocketmq.remoting.settings.config_file import ConfigError, load

AUTH = "org.apache.rocketmq.auth."


def loaded(**values: str) -> AuthConfig:
    config, unknown = load(AuthConfig, values)
    assert unknown == []
    return config


def test_there_are_no_accounts_by_default() -> None:
    config = loaded()
    assert not config.has_users
    assert config.first_user() is None
    assert config.credentials() is config.seal() is None
    assert config.named_users() == {}
    assert config.open_codes(authorization=True) == set()


def test_a_file_of_the_original_is_taken() -> None:
    config = loaded(
        authenticationEnabled="true",
        authenticationProvider=AUTH + "authentication.provider.DefaultAuthenticationProvider",
        authenticationMetadataProvider=AUTH
        + "authentication.provider.LocalAuthenticationMetadataProvider",
        authenticationStrategy=AUTH + "authentication.strategy.StatefulAuthenticationStrategy",
        authenticationWhitelist=" 105, 34,,",
        initAuthenticationUser='{"username":"root","password":"12345678"}',
        innerClientAuthenticationCredentials='{"accessKey":"inner","secretKey":"s"}',
        authorizationEnabled="true",
        authorizationProvider=AUTH + "authorization.provider.DefaultAuthorizationProvider",
        authorizationMetadataProvider=AUTH
        + "authorization.provider.LocalAuthorizationMetadataProvider",
        authorizationStrategy=AUTH + "authorization.strategy.StatelessAuthorizationStrategy",
        authorizationWhitelist="12",
    )
    assert config.has_users
    assert config.open_codes(authorization=False) == {105, 34}
    assert config.open_codes(authorization=True) == {12}
    assert config.first_user() == User("root", "12345678", UserType.SUPER)
    assert config.named_users() == {
        "initAuthenticationUser": config.first_user(),
        "innerClientAuthenticationCredentials": User("inner", "s", UserType.SUPER),
    }
    assert config.seal() is not None
    assert config.credentials() == ("inner", "s", "")


def test_users_can_be_made_before_they_are_needed() -> None:
    name = "authentication.provider.LocalAuthenticationMetadataProvider"
    assert loaded(authenticationMetadataProvider=AUTH + name).has_users


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("authorizationEnabled", "true", "authorizationEnabled needs authenticationEnabled=true"),
        ("authenticationProvider", "com.example.Ours", "can only be org.apache.rocketmq.auth"),
        ("authenticationStrategy", "Stateless", "StatelessAuthenticationStrategy or org"),
        ("authorizationMetadataProvider", "x", "LocalAuthorizationMetadataProvider"),
        ("authenticationWhitelist", "105,HeartbeatRequest", "codes of requests like 105,34"),
        ("authorizationWhitelist", "-1", "authorizationWhitelist must be codes"),
        ("authenticationWhitelist", "3001", "authenticationWhitelist cannot have 3001"),
        ("initAuthenticationUser", "root:hunter2", "is no JSON object"),
        ("initAuthenticationUser", "[" * 100_000, "is no JSON object"),
        ("initAuthenticationUser", '{"username":"root"}', "has no password"),
        ("initAuthenticationUser", '{"username":3,"password":"hunter2"}', "has no username"),
        ("innerClientAuthenticationCredentials", '{"accessKey":"a"}', "has no secretKey"),
    ],
)
def test_what_stops_the_start(key: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=key) as refused:
        loaded(**{key: text})
    assert why in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_credentials_are_not_shown() -> None:
    text = '{"accessKey":"inner","secretKey":"hunter2","securityToken":"hunter3"}'
    user = '{"username":"root","password":"hunter4"}'
    config = loaded(innerClientAuthenticationCredentials=text, initAuthenticationUser=user)
    assert "hunter" not in f"{config!r}{config}"
    credentials = config.credentials()
    assert credentials == ("inner", "hunter2", "hunter3")
    assert "hunter" not in f"{credentials!r}{credentials}"


def test_the_settings_of_the_page_are_those_that_are_read() -> None:
    (text,) = (
        block.text
        for block in blocks()
        if block.page == "docs/security.md" and block.text.startswith("authenticationEnabled=")
    )
    config = loaded(**dict(line.split("=", 1) for line in text.splitlines()))
    assert config.authentication_enabled
    assert config.authorization_enabled
    assert sorted(user.name for user in config.named_users().values()) == ["broker", "ops"]
