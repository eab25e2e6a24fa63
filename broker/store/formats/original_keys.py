# SPDX-License-Identifier: Apache-2.0
"""Settings of the original's MessageStoreConfig that are accepted and have no effect here.

They tune threads, locks, memory pools, and features that are not served (docs/compatibility.md says
which). Union of 4.9.7 and 5.4.0, with their defaults. Values that would say where messages are kept
or who else has them are refused as long as that is not served.
"""

from typing import Final

from txrocketmq.remoting.settings.config_file import Unserved, original_keys

STORE_KEYS: Final = original_keys(
    """
    accessMessageInMemoryHotRatio=26
    batchDispatchRequestThreadPoolNums=16 bitMapLengthConsumeQueueExt=112
    bottomMostCompressionTypeForConsumeQueueStore=zstd cleanRocksDBDirtyCQIntervalMin=60
    cleanSwapedMapInterval=300000 coldDataFlowControlEnable=false coldDataScanEnable=false
    combineAssignOffsetCQType=default combineCQEnableCheckSelf=false
    combineCQLoadingCQTypes=default;defaultRocksDB combineCQMaxExtraSearchCommitLogFiles=3
    combineCQPreferCQType=default commitCommitLogLeastPages=4 commitCommitLogThoroughInterval=200
    commitIntervalCommitLog=200 commitLogForceSwapMapInterval=43200000 commitLogRecoverMaxNum=10
    commitLogSwapMapInterval=3600000 commitLogSwapMapReserveFileNum=100
    compactionCqMappedFileSize=10485760 compactionMappedFileSize=104857600
    compactionScheduleInternal=900000 compactionThreadNum=6
    correctLogicMinOffsetForceInterval=300000 correctLogicMinOffsetSleepInterval=1
    dataReadAheadEnable=true debugLockEnable=false deleteCommitLogFilesInterval=100
    deleteConsumeQueueFilesInterval=100 destroyMapedFileIntervalForcibly=120000
    disappearTimeAfterStart=-1 diskFallRecorded=true dispatchCqCacheNum=4096 dispatchCqThreads=10
    dispatchFromSenderThread=false dLegerGroup dLegerPeers dLegerSelfId duplicationEnable=false
    enableAcceleratedRecovery=false enableAsyncReput=true
    enableBatchPush=false enableBuildConsumeQueueConcurrently=false enableCleanExpiredOffset=false
    enableCompaction=true enabledAppendPropCRC=false enableDLegerCommitLog=false
    enableLogConsumeQueueRepeatedlyBuildWhenRecover=false
    enableRocksDBLog=false enableRunningFlagsInFlush=false enableScheduleAsyncDeliver=false
    enableScheduleMessageStats=true fastFailIfNoBufferInStorePool=false flushCommitLogLeastPages=4
    flushCommitLogThoroughInterval=10000 flushCommitLogTimed=true
    flushLeastPagesWhenWarmMapedFile=4096 forceVerifyPropCRC=false
    indexFileReadEnable=true indexFileWriteEnable=true
    indexRocksDBEnable=false isEnableBatchPush=false
    logicalDiskSpaceCleanForciblyThreshold=0.8 logicQueueForceSwapMapInterval=43200000
    logicQueueSwapMapInterval=3600000 logicQueueSwapMapReserveFileNum=20
    mappedFileSwapEnable=true
    maxAsyncPutMessageRequests=5000
    maxBatchDeleteFilesNum=50 maxChecksumRange=1073741824 maxConsumeQueueScan=20000
    maxOffsetMapSize=104857600
    maxRecoveryCommitlogFiles=30 maxRocksDBIndexQueryDays=7 maxSlaveResendLength=268435456
    maxTopicLength=127 memTableFlushIntervalMs=3600000 messageIndexSafe=false
    osPageCacheBusyTimeOutMills=1000 preferredLeaderId pullBatchMaxMessageCount=160
    putConsumeQueueDataByFileChannel=true putMessageTimeout=8000 putMsgIndexHightWater=600000
    readOnlyCommitLogStorePaths realTimePersistRocksDBConfig=true recheckReputOffsetFromCq=false
    redeleteHangedFileInterval=120000 replicasPerDiskPartition=1 rocksdbCompressionType=lz4
    rocksdbCQDoubleWriteEnable=false rocksdbFlushWalFrequency=1024
    rocksdbWalFileRollingThreshold=1073741824 sampleCountThreshold=5000 sampleSteps=32
    scheduleAsyncDeliverMaxPendingLimit=2000 scheduleAsyncDeliverMaxResendNum2Blocked=3
    searchBcqByCacheEnable=true sharedByteBufferNum=16
    spinLockCollisionRetreatOptimalDegree=1000 statRocksDBCQIntervalSec=10
    storePathDLedgerCommitLog storeType=default
    syncMasterFlushOffsetWhenStartup=false timerCheckMetricsWhen=05
    timerColdDataCheckIntervalMs=60000
    timerEnableCheckMetrics=true timerEnableDisruptor=false timerEnableRetryUntilSuccess=false
    timerGetMessageThreadNum=3 timerInterceptDelayLevel=false
    timerMetricSmallThreshold=1000000
    timerProgressLogIntervalMs=10000 timerPutMessageThreadNum=3 timerRecallToTimelineEnable=true
    timerRecallToTimeWheelEnable=true timerRocksDBEnable=false timerRocksDBPrecisionMs=1000
    timerRocksDBRollIntervalHours=1 timerRocksDBRollMaxTps=8000.0 timerRocksDBRollRangeHours=2
    timerRocksDBStopScan=false timerRocksDBTimeExpiredMaxTps=200000.0
    timerSkipUnknownError=false timerWarmEnable=false
    timerWheelSnapshotFlush=false timerWheelSnapshotIntervalMs=10000
    topicQueueLockNum=32 transientStorePoolEnable=false transientStorePoolSize=5
    transRocksDBEnable=false transWriteOriginTransHalfEnable=true useABSLock=false
    useReentrantLockWhenPutMessage=true wakeCommitWhenPutMessage=true wakeFlushWhenPutMessage=false
    warmMapedFileEnable=false writeWithoutMmap=false
    """
)

_TRUE: Final = ("true",)
_REPLICATION: Final = "replication"
_ROCKSDB: Final = "RocksDB"
STORE_UNSERVED: Final = (
    Unserved("duplicationEnable", _TRUE, _REPLICATION, "false"),
    Unserved("enableDLegerCommitLog", _TRUE, "a log kept by DLedger", "false"),
    Unserved("storeType", ("defaultRocksDB",), _ROCKSDB, "default"),
    Unserved("rocksdbCQDoubleWriteEnable", _TRUE, _ROCKSDB, "false"),
    Unserved("indexRocksDBEnable", _TRUE, _ROCKSDB, "false"),
    Unserved("transRocksDBEnable", _TRUE, _ROCKSDB, "false"),
    Unserved("timerRocksDBEnable", _TRUE, _ROCKSDB, "false"),
    Unserved("timerInterceptDelayLevel", _TRUE, "delay levels in the timer wheel", "false"),
    Unserved("timerWheelSnapshotFlush", _TRUE, "snapshots of the timer wheel", "false"),
    Unserved("readOnlyCommitLogStorePaths", (), "a log in several directories"),
    Unserved("coldDataFlowControlEnable", _TRUE, "flow control of cold reads", "false"),
    Unserved("enabledAppendPropCRC", _TRUE, "a checksum of properties", "false"),
)
"""The settings that are accepted and have no effect."""
