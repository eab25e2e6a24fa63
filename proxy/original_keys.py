# SPDX-License-Identifier: Apache-2.0
"""Settings that the original's proxy reads from rmq-proxy.json and that have no effect here.

They tune threads, Netty, caches and the port for clients of the remoting protocol: ProxyConfig and
AuthConfig of 5.4.0 and 5.5.0. Values that promise what is not served are refused.
"""

from typing import Final

from txrocketmq.remoting.settings.config_file import Unserved, original_keys

PROXY_KEYS: Final = original_keys(
    """
    proxyClusterName proxyName localServeAddr
    heartbeatSyncerTopicClusterName heartbeatSyncerThreadPoolNums
    heartbeatSyncerThreadPoolQueueCapacity heartbeatSyncerTopicName
    enablePrintJstack printJstackInMillis printThreadPoolStatusInMillis
    namesrvDomain namesrvDomainSubgroup tlsCertWatchIntervalMs
    grpcBossLoopNum grpcWorkerLoopNum enableGrpcEpoll grpcThreadPoolNums
    grpcThreadPoolQueueCapacity brokerConfigPath
    channelExpiredInSeconds contextExpiredInSeconds rocketmqMQClientNum
    grpcProducerThreadPoolNums grpcProducerThreadQueueCapacity
    grpcConsumerThreadPoolNums grpcConsumerThreadQueueCapacity
    grpcRouteThreadPoolNums grpcRouteThreadQueueCapacity
    grpcClientManagerThreadPoolNums grpcClientManagerThreadQueueCapacity
    grpcTransactionThreadPoolNums grpcTransactionThreadQueueCapacity
    producerProcessorThreadPoolNums producerProcessorThreadPoolQueueCapacity
    consumerProcessorThreadPoolNums consumerProcessorThreadPoolQueueCapacity
    topicRouteServiceThreadPoolNums topicRouteServiceThreadPoolQueueCapacity
    topicRouteServiceCacheMaxNum topicConfigCacheMaxNum
    subscriptionGroupConfigCacheMaxNum userCacheMaxNum aclCacheMaxNum
    metadataThreadPoolNums metadataThreadPoolQueueCapacity
    transactionHeartbeatThreadPoolNums transactionHeartbeatThreadPoolQueueCapacity
    transactionDataExpireScanPeriodMillis transactionDataMaxWaitClearMillis
    longPollingReserveTimeInMillis renewThreadPoolNums renewMaxThreadPoolNums
    renewThreadPoolQueueCapacity lockTimeoutMsInHandleGroup
    messageDelayLevel metricCollectorMode metricCollectorAddress
    metricsGrpcExporterTarget metricsGrpcExporterHeader metricGrpcExporterTimeOutInMills
    metricGrpcExporterIntervalInMills metricLoggingExporterIntervalInMills metricsInDelta
    channelExpiredTimeout enableRemotingLocalProxyGrpc localProxyConnectTimeoutMs
    remotingAccessAddr remotingListenPort sendLatencyEnable startDetectorEnable detectTimeout
    detectInterval remotingHeartbeatThreadPoolNums remotingTopicRouteThreadPoolNums
    remotingSendMessageThreadPoolNums remotingPullMessageThreadPoolNums
    remotingUpdateOffsetThreadPoolNums remotingDefaultThreadPoolNums
    remotingHeartbeatThreadPoolQueueCapacity remotingTopicRouteThreadPoolQueueCapacity
    remotingSendThreadPoolQueueCapacity remotingPullThreadPoolQueueCapacity
    remotingUpdateOffsetThreadPoolQueueCapacity remotingDefaultThreadPoolQueueCapacity
    remotingWaitTimeMillsInSendQueue remotingWaitTimeMillsInPullQueue
    remotingWaitTimeMillsInHeartbeatQueue remotingWaitTimeMillsInUpdateOffsetQueue
    remotingWaitTimeMillsInTopicRouteQueue remotingWaitTimeMillsInDefaultQueue
    useDelayLevel authConfigPath migrateAuthFromV1Enabled userCacheExpiredSecond
    userCacheRefreshSecond aclCacheExpiredSecond aclCacheRefreshSecond
    statefulAuthenticationCacheMaxNum statefulAuthenticationCacheExpiredSecond
    statefulAuthorizationCacheMaxNum statefulAuthorizationCacheExpiredSecond
    """
)

_TRUE: Final = ("true",)

PROXY_UNSERVED: Final = (
    Unserved("proxyMode", ("local",), "a broker in the process of the proxy", "CLUSTER"),
    Unserved("useDelayLevel", _TRUE, "delays by levels", "false"),
)
"""Settings that promise what is not served."""
