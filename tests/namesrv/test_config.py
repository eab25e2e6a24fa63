# SPDX-License-Identifier: Apache-2.0
"""Settings: the original's keys, all of them, and its defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    as_properties,
    ignored_keys,
    known_keys,
    load,
)

# Setters of NamesrvConfig of 5.4.0, which has all of 4.9.7's; by reflection.
ORIGINAL = """
    clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity clusterTest configBlackList
    configStorePath defaultThreadPoolNums defaultThreadPoolQueueCapacity
    deleteTopicWithBrokerRegistration enableAllTopicList enableControllerInNamesrv enableTopicList
    kvConfigPath needWaitForService notifyMinBrokerIdChanged orderMessageEnable productEnvName
    returnOrderTopicConfigToBroker rocketmqHome scanNotActiveBrokerInterval supportActingMaster
    unRegisterBrokerQueueCapacity waitSecondsForService
""".split()
# Of NettyServerConfig, likewise.
LISTENING = """
    bindAddress enableShutdownGracefully listenPort serverAsyncSemaphoreValue
    serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds serverNettyWorkerGroupEnable
    serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads
    serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads
    shutdownWaitTimeSeconds useEpollNativeSelector writeBufferHighWaterMark
    writeBufferLowWaterMark
""".split()


# Of ControllerConfig; here they are those of the name server.
METRICS = """
    metricsExporterType metricsLabel metricsPromExporterHost metricsPromExporterPort
""".split()

OURS = """
    adminAddresses brokersWithoutAccount maxBytesHeldForPeers maxConnectionsPerAddress
    proxyProtocolFrom
""".split()

# Of AuthConfig, which the original's name server does not read.
ACCOUNTS = """
    authenticationEnabled authenticationMetadataProvider authenticationProvider
    authenticationStrategy authenticationWhitelist authorizationEnabled
    authorizationMetadataProvider authorizationProvider authorizationStrategy
    authorizationWhitelist initAuthenticationUser innerClientAuthenticationCredentials
    migrateAuthFromV1Enabled
""".split()


def test_all_keys_of_the_original_are_known() -> None:
    assert set(ORIGINAL) | set(LISTENING) <= known_keys(NamesrvConfig)
    _, unknown = load(NamesrvConfig, {"connectTimeoutMillis": "1", "controllerDLegerGroup": "g"})
    assert not unknown


def test_all_settings_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_HOME", "/opt/rocketmq")
    monkeypatch.setenv("HOME", "/home/me")
    shown = as_properties(NamesrvConfig())
    assert shown.keys() - set(LISTENING) == {*ORIGINAL, *METRICS, *OURS, *ACCOUNTS}
    assert shown["rocketmqHome"] == "/opt/rocketmq"
    assert shown["kvConfigPath"] == "/home/me/namesrv/kvConfig.json"
    assert shown["configStorePath"] == "/home/me/namesrv/namesrv.properties"
    assert shown["listenPort"] == "9876"
    assert shown["scanNotActiveBrokerInterval"] == "5000"


def test_what_has_no_effect_is_told(tmp_path: Path) -> None:
    given = {"clusterTest": "true", "serverSocketBacklog": "true", "orderMessageEnable": "true"}
    config, unknown = load(NamesrvConfig, given)
    assert config.order_message_enable
    assert not unknown
    assert ignored_keys(NamesrvConfig, given) == ["clusterTest", "serverSocketBacklog"]


def test_no_ignored_key_is_a_setting_too() -> None:
    assert not NamesrvConfig.IGNORED.keys() & as_properties(NamesrvConfig(rocketmq_home="")).keys()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"migrateAuthFromV1Enabled": "true"}, "is for brokers"),
        ({"brokersWithoutAccount": "10.0.0.1;broker-a"}, "not 'broker-a'"),
        ({"authorizationEnabled": "true"}, "needs authenticationEnabled"),
    ],
)
def test_accounts_that_cannot_be_used_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(NamesrvConfig, given)
