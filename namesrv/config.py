# SPDX-License-Identifier: Apache-2.0
"""The name server's settings, under the names of namesrv.conf.

Counterpart of NamesrvConfig and of the listening half of NettyServerConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from txrocketmq.remoting.config_file import setting


@dataclass(frozen=True)
class NamesrvConfig:
    """One name server. Times are in milliseconds."""

    IGNORED: ClassVar[frozenset[str]] = frozenset(
        """
        bindAddress2 clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity clusterTest
        clusterTestProductEnvName defaultThreadPoolNums defaultThreadPoolQueueCapacity
        enableControllerInNamesrv enableShutdownGracefully productEnvName
        serverAsyncSemaphoreValue serverCallbackExecutorThreads serverNettyWorkerGroupEnable
        serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads
        serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads
        shutdownWaitTimeSeconds unRegisterBrokerQueueCapacity useEpollNativeSelector
        writeBufferHighWaterMark writeBufferLowWaterMark returnOrderTopicConfigToBroker
        """.split()
    )

    rocketmq_home: str = setting("")
    """Unused but for GET_NAMESRV_CONFIG."""
    bind_address: str = setting("0.0.0.0")  # noqa: S104 - the original's default
    """Address to listen on."""
    listen_port: int = setting(9876)
    """Port; 0: any free one."""
    kv_config_path: str = setting(str(Path.home() / "namesrv" / "kvConfig.json"))
    """File of the key-values."""
    config_store_path: str = setting(str(Path.home() / "namesrv" / "namesrv.properties"))
    """File that UPDATE_NAMESRV_CONFIG writes to."""
    config_black_list: str = setting(
        "configBlackList;configStorePath;kvConfigPath;rocketmqHome", live=True
    )
    """Keys that UPDATE_NAMESRV_CONFIG refuses, separated by semicolons."""
    order_message_enable: bool = setting(False, live=True)
    """Whether routes carry the order configuration of topics."""
    enable_topic_list: bool = setting(True, live=True)
    """Whether lists of topics by unit are given out."""
    enable_all_topic_list: bool = setting(True, live=True)
    """Whether the list of all topics is given out."""
    delete_topic_with_broker_registration: bool = setting(False)
    """Whether topics go that a broker no longer registers."""
    support_acting_master: bool = setting(False)
    """Whether routes show a slave in place of a missing master (5.x)."""
    notify_min_broker_id_changed: bool = setting(False, live=True)
    """Whether brokers are told when the smallest id of their name changes (5.x)."""
    scan_not_active_broker_interval: int = setting(5_000)
    """How often silent brokers are looked for."""
    need_wait_for_service: bool = setting(False, live=True)
    """Whether routes are refused until brokers had time to register."""
    wait_seconds_for_service: int = setting(45, live=True)
    """That time, in seconds."""
    server_channel_max_idle_time_seconds: int = setting(120)
    """Idle time in seconds at which a connection is closed."""
