# SPDX-License-Identifier: Apache-2.0
"""Settings that the original's mqnamesrv reads from its file and that have no effect here.

They tune Netty, threads and the embedded controller: NettyServerConfig, NettyClientConfig,
ControllerConfig and JraftConfig of 4.9.7 and 5.4.0. Values that promise a controller are
refused as long as these are not served.
"""

from typing import Final

from txrocketmq.remoting.settings.config_file import Unserved, original_keys

NAMESRV_KEYS: Final = original_keys(
    """
    channelNotActiveInterval clientAsyncSemaphoreValue clientCallbackExecutorThreads
    clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout clientOnewaySemaphoreValue
    clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads connectTimeoutMillis controllerDLegerGroup controllerDLegerPeers
    controllerDLegerSelfId controllerRequestThreadPoolQueueCapacity controllerStorePath
    controllerThreadPoolNums controllerType disableCallbackExecutor disableNettyWorkerGroup
    electMasterMaxRetryCount enableElectUncleanMaster enableReconnectForGoAway
    isProcessReadEvent jraftConfig jRaftControllerRPCAddr
    jRaftElectionTimeoutMs jRaftGroupId jRaftInitConf jRaftScanWaitTimeoutMs jRaftServerId
    jRaftSnapshotIntervalSecs mappedFileSize maxReconnectIntervalTimeSeconds
    metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills
    metricLoggingExporterIntervalInMills metricsGrpcExporterHeader metricsGrpcExporterTarget
    metricsInDelta notifyBrokerRoleChanged scanAvailableNameSrv scanInactiveMasterInterval
    serverAsyncSemaphoreValue=64 serverCallbackExecutorThreads=0
    serverNettyWorkerGroupEnable=true serverOnewaySemaphoreValue=256
    serverPooledByteBufAllocatorEnable=true serverSelectorThreads=3 serverSocketBacklog=1024
    serverSocketRcvBufSize=0 serverSocketSndBufSize=0 serverWorkerThreads=8
    socksProxyConfig useEpollNativeSelector=false
    writeBufferHighWaterMark=0 writeBufferLowWaterMark=0
    """
)

NAMESRV_UNSERVED: Final = (
    Unserved("enableControllerInNamesrv", ("true",), "a controller", "false"),
)
"""Settings that promise what is not served."""
