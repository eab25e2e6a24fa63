# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.remoting.settings.value_text import HIDDEN, shown, what_is_wrong

USER = '{"username":"root","password":"hunter2"}'


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("initAuthenticationUser", USER),
        ("initAuthenticationUser", "root"),
        ("innerClientAuthenticationCredentials", '{"accessKey":"a","secretKey":"hunter2"}'),
        ("initAuthenticatonUser", USER),  # misspelt, so nobody knows it
        ("tls.server.keyPassword", "hunter2"),
        ("socksProxyConfig", '{"0.0.0.0/0":{"addr":"a:1","username":"u","password":"hunter2"}}'),
        ("metricsGrpcExporterHeader", "Authorization:Basic aHVudGVyMg=="),
        ("metricsGrpcExporterHeader", "x-key:Bearer hunter2"),
    ],
)
def test_secrets_are_not_shown(key: str, text: str) -> None:
    assert shown(key, text) == HIDDEN


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("initAuthenticationUser", ""),
        ("innerClientAuthenticationCredentials", " "),
        ("socksProxyConfig", "{}"),
        ("brokerConfigPath", "/run/secrets/broker.conf"),
        ("storePathRootDir", "/home/password"),
        ("configBlackList", "configBlackList;brokerConfigPath"),
    ],
)
def test_all_else_is_shown(key: str, text: str) -> None:
    assert shown(key, text) == text


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"regionId": "R\u0002TAGS\u0001evil"}, "regionId contains the control character U+0002"),
        (
            {"brokerName": "a", "note": "x\nnamesrvAddr=b"},
            "note contains the control character U+000A",
        ),
        ({"a\tb": "c"}, "a\\tb contains the control character U+0009"),
        ({"a": "\ud800"}, "a contains the control character U+D800"),
        ({"a": "\x9b31m"}, "a contains the control character U+009B"),
    ],
)
def test_control_characters_are_named_with_their_setting(
    values: dict[str, str], where: str
) -> None:
    assert what_is_wrong(values) == f"{where}: write it without such characters"


def test_other_characters_are_welcome() -> None:
    assert what_is_wrong({"brokerName": "Köln 北京 \U0001f600\u00a0", "blank": " \t"}) == ""
