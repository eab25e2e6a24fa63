# SPDX-License-Identifier: Apache-2.0
"""The name server's settings, under the names of namesrv.conf.

Counterpart of NamesrvConfig and of the listening half of NettyServerConfig.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from txrocketmq.namesrv.original_keys import NAMESRV_KEYS
from txrocketmq.remoting.config_file import setting


def _in_home(name: str) -> str:
    return str(Path.home() / "namesrv" / name)


@dataclass(frozen=True, slots=True)
class NamesrvConfig:
    """One name server. Times are in milliseconds unless the name says otherwise."""

    IGNORED: ClassVar[frozenset[str]] = NAMESRV_KEYS

    rocketmq_home: str | None = setting(lambda: os.environ.get("ROCKETMQ_HOME"), effect=False)
    """Where the original is installed; here it is only shown."""
    bind_address: str = setting("0.0.0.0")
    """Address to listen on."""
    listen_port: int = setting(9876)
    """Port; 0: any free one."""
    kv_config_path: str = setting(lambda: _in_home("kvConfig.json"))
    """File of the key-values."""
    config_store_path: str = setting(lambda: _in_home("namesrv.properties"))
    """File that UPDATE_NAMESRV_CONFIG writes to; the one given with -c when there is one."""
    config_black_list: str = setting("configBlackList;configStorePath;kvConfigPath")
    """Keys that UPDATE_NAMESRV_CONFIG refuses, by semicolons; these three it always does."""
    order_message_enable: bool = setting(False, live=True)
    """Whether routes carry the order configuration of topics."""
    return_order_topic_config_to_broker: bool = setting(True, live=True)
    """Whether the answer to a registration carries it."""
    enable_topic_list: bool = setting(True, live=True)
    """Whether the lists of topics by cluster and unit are given out."""
    enable_all_topic_list: bool = setting(True, live=True)
    """Whether the list of all topics is given out."""
    delete_topic_with_broker_registration: bool = setting(False, live=True)
    """Whether topics go that a broker no longer registers."""
    support_acting_master: bool = setting(False, live=True)
    """Whether routes show a slave in place of a missing master (5.x)."""
    notify_min_broker_id_changed: bool = setting(False, live=True)
    """Whether brokers are told when the smallest id of their name changes (5.x)."""
    scan_not_active_broker_interval: int = setting(5_000, least=1)
    """How often silent brokers are looked for."""
    need_wait_for_service: bool = setting(False, live=True)
    """Whether routes are refused until brokers had time to register."""
    wait_seconds_for_service: int = setting(45, live=True)
    """That time, in seconds."""
    server_channel_max_idle_time_seconds: int = setting(120)
    """Idle time in seconds at which a connection is closed; 0: never."""
    product_env_name: str = setting("center", effect=False)
    """Of another name server that is asked for unknown topics in cluster tests."""
    cluster_test: bool = setting(False, effect=False)
    """Whether it is asked."""
    enable_controller_in_namesrv: bool = setting(False, effect=False)
    """Whether a controller runs in the same process (5.x)."""
    client_request_thread_pool_nums: int = setting(8, effect=False)
    """Requests are served as they are read, without threads."""
    default_thread_pool_nums: int = setting(16, effect=False)
    """Likewise."""
    client_request_thread_pool_queue_capacity: int = setting(50_000, effect=False)
    """Likewise: no queues."""
    default_thread_pool_queue_capacity: int = setting(10_000, effect=False)
    """Likewise."""
    un_register_broker_queue_capacity: int = setting(3_000, effect=False)
    """Brokers are unregistered at once."""
