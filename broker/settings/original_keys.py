# SPDX-License-Identifier: Apache-2.0
"""Settings of the original's broker.conf that are accepted and have no effect here.

They tune thread pools, Netty, and features that are not served (docs/compatibility.md says which).
Union of 4.9.7 and 5.4.0: BrokerConfig, NettyServerConfig, NettyClientConfig, AuthConfig, with their
defaults, those of 5.4.0 where the two differ. Keys of the store are with the store's configuration.

Where a value says who may do what, where messages are kept or who else has them, it is not passed
over but refused as long as that is not served: BROKER_UNSERVED. Features that are refused at each
use, such as SQL92 filters, are not among them: whoever asks for those is told.
"""

import os
from typing import Final

from txrocketmq.remoting.settings.config_file import Unserved, original_keys

_CORES: Final = os.cpu_count() or 1
BROKER_KEYS: Final = original_keys(
    f"""
    clientCallbackExecutorThreads={_CORES} heartbeatThreadPoolNums={min(_CORES, 32)}
    endTransactionThreadPoolNums={8 + 2 * _CORES} litePullMessageThreadPoolNums={16 + 2 * _CORES}
    processReplyMessageThreadPoolNums={16 + 2 * _CORES}
    pullMessageThreadPoolNums={16 + 2 * _CORES} putMessageFutureThreadPoolNums={min(_CORES, 4)}
    queryMessageThreadPoolNums={8 + _CORES} sendMessageThreadPoolNums={min(_CORES, 4)}
    """
) | original_keys(
    """
    accountStatsEnable=true accountStatsPrintZeroValues=true ackMessageThreadPoolNums=16
    ackThreadPoolQueueCapacity=100000 aclCacheExpiredSecond=600 aclCacheMaxNum=1000
    aclCacheRefreshSecond=60 adminBrokerThreadPoolNums=16
    adminBrokerThreadPoolQueueCapacity=10000
    appendAckAsync=false appendCkAsync=false asyncSendEnable=true authConfigPath
    autoDeleteUnusedStats=true
    brokerFastFailureEnable=true
    cgColdReadThreshold=3145728 channelNotActiveInterval=60000
    cleanOfflineBrokerInterval=30000 clientAsyncSemaphoreValue=65535
    clientChannelMaxIdleTimeSeconds=120 clientCloseSocketIfTimeout=true
    clientManagerThreadPoolQueueCapacity=1000000 clientManageThreadPoolNums=32
    clientOnewaySemaphoreValue=65535 clientPooledByteBufAllocatorEnable=false
    clientSocketRcvBufSize=0 clientSocketSndBufSize=0 clientWorkerThreads=4 clusterName
    coldCtrStrategyEnable=false commercialBaseCount=1 commercialBigCount=1 commercialEnable=true
    commercialSizePerMsg=4096 commercialTimerCount=1 commercialTransCount=1
    compressedRegister=false configManagerVersion=v1 configName
    connectTimeoutMillis=3000 consumerFallbehindThreshold=17179869184
    consumerManagerThreadPoolQueueCapacity=1000000 consumerManageThreadPoolNums=32
    consumerOffsetUpdateVersionStep=500
    defaultBrokerClusterName delayOffsetUpdateVersionStep=200 disableCallbackExecutor=false
    disableNettyWorkerGroup=false enableConnectionMetrics=true
    enableDetailStat=true enableFastChannelEventProcess=false
    enableLagAndDlqMetrics=true enableLmqStats=false enableMessageStoreMetrics=true
    enableNetWorkFlowControl=false
     enableNotifyBeforePopCalculateLag=true
      enablePopLog=false
     enablePopMetrics=true enableReconnectForGoAway=true
    enableRegisterProducer=true enableRemotingMetrics=true
    enableRequestMetrics=true
    enableSingleTopicRegister=false enableSkipLongAwaitingAck=false
    enableStatsMetrics=true
    enableTransactionMetrics=true endTransactionPoolQueueCapacity=100000
    estimateAccumulation=true fetchControllerAddrByDnsLookup=false
    fetchNamesrvAddrByAddressServer=false fetchNameSrvAddrByDnsLookup=false
    fetchNamesrvAddrInterval=10000 filterServerNums=0 flushConsumerOffsetHistoryInterval=60000
    forwardTimeout=3000 globalColdReadThreshold=104857600 heartbeatThreadPoolQueueCapacity=50000
    highSpeedMode=false
    isBrokerContainer=false isInBrokerContainer=false
    isolateLogEnable=false isScanAvailableNameSrv=true litePullThreadPoolQueueCapacity=100000
    loadBalancePollNameServerInterval=30000 loadBalanceProcessorThreadPoolNums=32
    loadBalanceThreadPoolQueueCapacity=100000 maxDelayTime=40
     maxReconnectIntervalTimeSeconds=60 maxStatsIdleTimeInMinutes=-1
    messageStorePlugIn= metricGrpcExporterIntervalInMills=60000
    metricGrpcExporterTimeOutInMills=3000 metricLoggingExporterIntervalInMills=10000
    metricsGrpcExporterHeader= metricsGrpcExporterTarget= metricsInDelta=false
    metricsOtelCardinalityLimit=50000
    popConsumerFSServiceInit=true popConsumerKVServiceEnable=false
    popConsumerKVServiceInit=false popConsumerKVServiceLog=false
    popLongPollingForceNotifyInterval=800 popPollingMapExpireTimeSeconds=600
    popPollingMapSize=100000
    popReviveConcurrency=32 popReviveMaxAttemptTimes=16 popReviveMaxReturnSizePerRead=16384
    printChannelGroups=false printChannelGroupsMinNum=5
    pullThreadPoolQueueCapacity=100000 putThreadPoolQueueCapacity=10000
    queryThreadPoolQueueCapacity=20000 recoverConcurrently=false
    recoverThreadPoolNums=32 rejectPullConsumerEnable=false replyThreadPoolQueueCapacity=10000
     reviveAckWaitMs=180000
    reviveMaxSlow=3 reviveScanTime=10000 sendHeartbeatTimeoutMillis=1000
    sendThreadPoolQueueCapacity=10000 serverAsyncSemaphoreValue=64
    serverCallbackExecutorThreads=0 serverNettyWorkerGroupEnable=true
    serverOnewaySemaphoreValue=256 serverPooledByteBufAllocatorEnable=true
    serverSelectorThreads=3 serverSocketBacklog=1024 serverSocketRcvBufSize=0
    serverSocketSndBufSize=0 serverWorkerThreads=8
    socksProxyConfig={}
    statefulAuthenticationCacheExpiredSecond=60
    statefulAuthenticationCacheMaxNum=10000 statefulAuthorizationCacheExpiredSecond=60
    statefulAuthorizationCacheMaxNum=10000 subscriptionExpiredTimeout=600000
    transactionOpBatchInterval=3000
    transactionOpMsgMaxSize=4096 transferMsgByHeap=true updateNameServerAddrPeriod=120000
    useEpollNativeSelector=false usePIDColdCtrStrategy=true userCacheExpiredSecond=600
    userCacheMaxNum=1000 userCacheRefreshSecond=60 useSeparateRetryQueue=false
    useSingleRocksDBForAllConfigs=false useStaticSubscription=false
    waitTimeMillsInAckQueue=3000 waitTimeMillsInAdminBrokerQueue=5000
    waitTimeMillsInHeartbeatQueue=31000 waitTimeMillsInLitePullQueue=5000
    waitTimeMillsInPullQueue=5000 waitTimeMillsInSendQueue=200
    waitTimeMillsInTransactionQueue=3000 writeBufferHighWaterMark=0 writeBufferLowWaterMark=0
    """
)

_TRUE: Final = ("true",)
BROKER_UNSERVED: Final = (
    Unserved("disableConsumeIfConsumerReadSlowly", _TRUE, "shutting slow groups out", "false"),
    Unserved("rejectPullConsumerEnable", _TRUE, "shutting pull consumers out", "false"),
    Unserved("messageStorePlugIn", (), "a plug-in of the store"),
    Unserved("popConsumerKVServiceEnable", _TRUE, "POP on RocksDB", "false"),
    Unserved("popConsumerKVServiceInit", _TRUE, "POP on RocksDB", "false"),
    Unserved("useSeparateRetryQueue", _TRUE, "a queue of retry topics for each queue", "false"),
)
"""Settings that promise what is not served."""
