# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.proxy.__main__ import CLASSES
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.remoting.settings.config_file import ConfigError, ignored_keys, load_all

CREDENTIALS = '{"accessKey":"inner","secretKey":"inner-secret"}'
AUTH = "org.apache.rocketmq.auth."
ORIGINAL = {
    "authenticationEnabled": "true",
    "authenticationProvider": AUTH + "authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": (
        "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider"
    ),
    "authorizationEnabled": "true",
    "authorizationProvider": AUTH + "authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": (
        "org.apache.rocketmq.proxy.auth.ProxyAuthorizationMetadataProvider"
    ),
    "innerClientAuthenticationCredentials": CREDENTIALS,
    "enableAclRpcHookForClusterMode": "true",
    "userCacheRefreshSeconds": "5",
    "statefulAuthenticationCacheMaxNum": "7",
}


def test_the_settings_of_the_original_are_taken() -> None:
    parts, unknown = load_all(CLASSES, ORIGINAL)
    config = parts[2]
    assert not unknown
    assert config.authentication_enabled
    assert config.authorization_enabled
    assert config.credentials().access_key == "inner"
    assert "inner-secret" not in repr(config)
    assert config.user_cache_refresh_seconds == 5
    assert ignored_keys(CLASSES[0], ORIGINAL) == ["statefulAuthenticationCacheMaxNum"]
    fields: dict[str, str] = {}
    config.seal()(fields, b"")
    assert fields["AccessKey"] == "inner"
    assert AccountsConfig().seal() is None


def test_lists_have_names_of_requests() -> None:
    config = AccountsConfig(
        authentication_whitelist="apache.rocketmq.v2.HeartbeatRequest, 34",
        authorization_whitelist=" apache.rocketmq.v2.TelemetryCommand",
    )
    assert config.open_calls(authorization=False) == {"HeartbeatRequest"}
    assert config.open_calls(authorization=True) == {"TelemetryCommand"}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"authorization_enabled": True}, "authorizationEnabled needs authenticationEnabled=true"),
        (
            {"authentication_metadata_provider": f"{AUTH}authentication.provider.LocalX"},
            "authenticationMetadataProvider can only be org.apache.rocketmq.proxy.auth.Proxy",
        ),
        ({"authorization_strategy": "Mine"}, "authorizationStrategy can only be .* or .*Stateful"),
        ({"authentication_whitelist": "Heartbeat"}, "names of requests like apache.rocketmq.v2.H"),
        ({"enable_acl_rpc_hook_for_cluster_mode": True}, "enableAclRpcHookForClusterMode needs"),
        ({"inner_client_authentication_credentials": "x"}, "is no JSON object"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, str | bool], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        AccountsConfig(**settings)  # type: ignore[arg-type]
