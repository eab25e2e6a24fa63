# SPDX-License-Identifier: Apache-2.0
"""Keys of the original's MessageStoreConfig that are accepted and have no effect here.

They tune threads, locks, memory pools, and features that are not served (docs/compatibility.md says
which). Union of 4.9.7 and 5.4.0.
"""

STORE_KEYS = frozenset(
    """
    accessMessageInMemoryHotRatio allAckInSyncStateSet appendTopicForTimerDeleteKey
    asyncLearner batchDispatchRequestThreadPoolNums bitMapLengthConsumeQueueExt
    bottomMostCompressionTypeForConsumeQueueStore cleanRocksDBDirtyCQIntervalMin
    cleanSwapedMapInterval coldDataFlowControlEnable coldDataScanEnable
    combineAssignOffsetCQType combineCQEnableCheckSelf combineCQLoadingCQTypes
    combineCQMaxExtraSearchCommitLogFiles combineCQPreferCQType commitCommitLogLeastPages
    commitCommitLogThoroughInterval commitIntervalCommitLog commitLogForceSwapMapInterval
    commitLogSwapMapInterval commitLogSwapMapReserveFileNum compactionCqMappedFileSize
    compactionMappedFileSize compactionScheduleInternal compactionThreadNum
    correctLogicMinOffsetForceInterval correctLogicMinOffsetSleepInterval dataReadAheadEnable
    debugLockEnable deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval
    destroyMapedFileIntervalForcibly disappearTimeAfterStart diskFallRecorded
    dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread dLegerGroup dLegerPeers
    dLegerSelfId duplicationEnable enableAcceleratedRecovery enableAsyncReput
    enableAutoInSyncReplicas enableBatchPush enableBuildConsumeQueueConcurrently
    enableCleanExpiredOffset enableCompaction enabledAppendPropCRC enableDLegerCommitLog
    enableLmq enableLogConsumeQueueRepeatedlyBuildWhenRecover enableMultiDispatch
    enableRocksDBLog enableRunningFlagsInFlush enableScheduleAsyncDeliver
    enableScheduleMessageStats fastFailIfNoBufferInStorePool flushCommitLogLeastPages
    flushCommitLogThoroughInterval flushCommitLogTimed flushLeastPagesWhenWarmMapedFile
    forceVerifyPropCRC haFlowControlEnable haHousekeepingInterval haMasterAddress
    haMaxGapNotInSync haMaxTimeSlaveNotCatchup haSendHeartbeatInterval haSlaveFallbehindMax
    haTransferBatchSize indexFileReadEnable indexFileWriteEnable indexRocksDBEnable
    inSyncReplicas isEnableBatchPush logicalDiskSpaceCleanForciblyThreshold
    logicQueueForceSwapMapInterval logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum
    mappedFileSizeTimerLog mappedFileSwapEnable mapperFileSizeBatchConsumeQueue
    maxAsyncPutMessageRequests maxBatchDeleteFilesNum maxChecksumRange maxConsumeQueueScan
    maxHaTransferByteInSecond maxLmqConsumeQueueNum maxOffsetMapSize maxRecoveryCommitlogFiles
    maxRocksDBIndexQueryDays maxSlaveResendLength maxTopicLength memTableFlushIntervalMs
    minInSyncReplicas osPageCacheBusyTimeOutMills preferredLeaderId pullBatchMaxMessageCount
    putConsumeQueueDataByFileChannel putMessageTimeout putMsgIndexHightWater
    readOnlyCommitLogStorePaths realTimePersistRocksDBConfig recheckReputOffsetFromCq
    redeleteHangedFileInterval replicasPerDiskPartition rocksdbCompressionType
    rocksdbCQDoubleWriteEnable rocksdbFlushWalFrequency rocksdbWalFileRollingThreshold
    sampleCountThreshold sampleSteps scheduleAsyncDeliverMaxPendingLimit
    scheduleAsyncDeliverMaxResendNum2Blocked searchBcqByCacheEnable sharedByteBufferNum
    slaveTimeout spinLockCollisionRetreatOptimalDegree statRocksDBCQIntervalSec
    storePathBrokerIdentity storePathDLedgerCommitLog storePathEpochFile storeType
    syncFromLastFile syncMasterFlushOffsetWhenStartup timerCheckMetricsWhen
    timerColdDataCheckIntervalMs timerCongestNumEachSlot timerEnableCheckMetrics
    timerEnableDisruptor timerEnableRetryUntilSuccess timerFlushIntervalMs
    timerGetMessageThreadNum timerInterceptDelayLevel timerMaxDelaySec
    timerMetricSmallThreshold timerPrecisionMs timerProgressLogIntervalMs
    timerPutMessageThreadNum timerRecallToTimelineEnable timerRecallToTimeWheelEnable
    timerRocksDBEnable timerRocksDBPrecisionMs timerRocksDBRollIntervalHours
    timerRocksDBRollMaxTps timerRocksDBRollRangeHours timerRocksDBStopScan
    timerRocksDBTimeExpiredMaxTps timerRollWindowSlot timerSkipUnknownError timerStopDequeue
    timerStopEnqueue timerWarmEnable timerWheelEnable timerWheelSnapshotFlush
    timerWheelSnapshotIntervalMs topicQueueLockNum totalReplicas transientStorePoolEnable
    transientStorePoolSize transRocksDBEnable transWriteOriginTransHalfEnable useABSLock
    useReentrantLockWhenPutMessage wakeCommitWhenPutMessage wakeFlushWhenPutMessage
    warmMapedFileEnable writeWithoutMmap
    """.split()
)
