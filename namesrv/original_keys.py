# SPDX-License-Identifier: Apache-2.0
"""Keys that the original's mqnamesrv reads from its file and that change nothing here.

They tune Netty, threads and the embedded controller: NettyServerConfig, NettyClientConfig,
ControllerConfig and JraftConfig of 4.9.7 and 5.4.0.
"""

from typing import Final

NAMESRV_KEYS: Final = frozenset(
    """
    enableShutdownGracefully serverAsyncSemaphoreValue serverCallbackExecutorThreads
    serverNettyWorkerGroupEnable serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable
    serverSelectorThreads serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize
    serverWorkerThreads shutdownWaitTimeSeconds useEpollNativeSelector writeBufferHighWaterMark
    writeBufferLowWaterMark

    channelNotActiveInterval clientAsyncSemaphoreValue clientCallbackExecutorThreads
    clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads connectTimeoutMillis disableCallbackExecutor disableNettyWorkerGroup
    enableReconnectForGoAway maxReconnectIntervalTimeSeconds scanAvailableNameSrv socksProxyConfig
    useTLS

    controllerDLegerGroup controllerDLegerPeers controllerDLegerSelfId
    controllerRequestThreadPoolQueueCapacity controllerStorePath controllerThreadPoolNums
    controllerType electMasterMaxRetryCount enableElectUncleanMaster isProcessReadEvent
    jRaftControllerRPCAddr jRaftElectionTimeoutMs jRaftGroupId jRaftInitConf jRaftScanWaitTimeoutMs
    jRaftServerId jRaftSnapshotIntervalSecs jraftConfig mappedFileSize
    metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills
    metricLoggingExporterIntervalInMills metricsExporterType metricsGrpcExporterHeader
    metricsGrpcExporterTarget metricsInDelta metricsLabel metricsPromExporterHost
    metricsPromExporterPort notifyBrokerRoleChanged scanInactiveMasterInterval
    """.split()
)
