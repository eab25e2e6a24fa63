# SPDX-License-Identifier: Apache-2.0
"""The name server's settings, under the names of namesrv.conf.

Counterpart of NamesrvConfig and of the listening half of NettyServerConfig.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from txrocketmq.access.auth.settings import AuthConfig
from txrocketmq.namesrv.original_keys import NAMESRV_KEYS, NAMESRV_UNSERVED
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.settings.config_file import (
    LARGEST_PORT,
    ConfigError,
    Unserved,
    setting,
)


def _in_home(name: str) -> str:
    return str(Path.home() / "namesrv" / name)


@dataclass(frozen=True)
class NamesrvConfig(AuthConfig):
    """The settings of a name server. Times are in milliseconds unless the name says otherwise."""

    IGNORED: ClassVar[Mapping[str, str | None]] = NAMESRV_KEYS
    UNSERVED: ClassVar[tuple[Unserved, ...]] = NAMESRV_UNSERVED

    rocketmq_home: str | None = setting(lambda: os.environ.get("ROCKETMQ_HOME"), effect=False)
    """Where the original is installed; here it is only shown."""
    use_tls: bool | None = setting(None, java="useTLS")
    """Whether connections that the server opens itself are encrypted. It is `true` by default if
    `tls.enable` is `true` or `tls.server.mode` is `enforcing`."""
    listen_port: int = setting(9876, most=LARGEST_PORT)
    """The port to listen on; 0 means any free port."""
    kv_config_path: str = setting(lambda: _in_home("kvConfig.json"))
    """The file in which the key-values are kept. With authenticationEnabled, users.json and
    acls.json beside it have the users and their policies, as brokers write them."""
    brokers_without_account: tuple[str, ...] = setting(())
    """With authenticationEnabled, the addresses or networks of brokers that register without an
    account, such as `10.0.0.5;10.1.0.0/16`, separated by semicolons. That is for brokers of 4.9,
    which cannot sign; those of 5.x do with innerClientAuthenticationCredentials."""
    config_store_path: str = setting(lambda: _in_home("namesrv.properties"))
    """The file that UPDATE_NAMESRV_CONFIG changes; the file given with -c, if there is one."""
    config_black_list: str = setting("configBlackList;configStorePath;kvConfigPath")
    """Keys that UPDATE_NAMESRV_CONFIG refuses, separated by semicolons.

    It always refuses these three.
    """
    order_message_enable: bool = setting(False, live=True)
    """Whether routes contain the order configuration of topics."""
    return_order_topic_config_to_broker: bool = setting(True, live=True)
    """Whether the answer to a registration contains the order configuration of topics."""
    enable_topic_list: bool = setting(True, live=True)
    """Whether the lists of topics by cluster and unit can be requested."""
    enable_all_topic_list: bool = setting(True, live=True)
    """Whether the list of all topics can be requested."""
    delete_topic_with_broker_registration: bool = setting(False, live=True)
    """Whether topics are removed when their broker no longer registers them."""
    support_acting_master: bool = setting(False, live=True)
    """Whether routes contain a slave in place of a missing master (5.x)."""
    notify_min_broker_id_changed: bool = setting(False, live=True)
    """Whether brokers are told when the smallest broker id under their name changes (5.x)."""
    scan_not_active_broker_interval: int = setting(5_000, least=1)
    """The period between two searches for brokers that are no longer heard of."""
    need_wait_for_service: bool = setting(False, live=True)
    """Whether routes are refused until brokers have had time to register."""
    wait_seconds_for_service: int = setting(45, live=True)
    """For how many seconds after the start routes are refused, with needWaitForService."""
    product_env_name: str = setting("center", effect=False)
    """The name server that the original asks for unknown topics in tests of clusters."""
    cluster_test: bool = setting(False, effect=False)
    """Whether the original asks another name server for unknown topics, in cluster tests."""
    enable_controller_in_namesrv: bool = setting(False, effect=False)
    """Whether a controller runs in the same process (5.x)."""
    client_request_thread_pool_nums: int = setting(8, effect=False)
    """Requests are served as they are read, without threads."""
    default_thread_pool_nums: int = setting(16, effect=False)
    """Requests are served as they are read, without threads."""
    client_request_thread_pool_queue_capacity: int = setting(50_000, effect=False)
    """Requests are served as they are read, without queues."""
    default_thread_pool_queue_capacity: int = setting(10_000, effect=False)
    """Requests are served as they are read, without queues."""
    un_register_broker_queue_capacity: int = setting(3_000, effect=False)
    """Brokers are unregistered at once."""

    def __post_init__(self) -> None:
        """Raises ConfigError if the settings cannot be used."""
        super().__post_init__()
        if self.migrate_auth_from_v1_enabled:
            raise ConfigError(
                "migrateAuthFromV1Enabled is for brokers: have one of them make the users, and copy"
                " its users.json and acls.json beside kvConfigPath"
            )
        try:
            Networks(self.brokers_without_account)
        except ValueError as error:
            raise ConfigError(
                "brokersWithoutAccount must be addresses and networks like 10.0.0.5;10.1.0.0/16,"
                f" not {str(error)!r}"
            ) from None
