# SPDX-License-Identifier: Apache-2.0
"""The store's settings, under the names of broker.conf.

Counterpart of store.config.MessageStoreConfig of both versions. The broker's own settings are in
`broker/settings/config.py`; both are read from the same file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from txrocketmq.broker.store.formats.delay_levels import DEFAULT_LEVELS, DelayLevels
from txrocketmq.broker.store.formats.original_keys import STORE_KEYS, STORE_UNSERVED
from txrocketmq.remoting.primitives.networks import Networks, is_host_and_port
from txrocketmq.remoting.settings.config_file import (
    INT_MAX,
    LARGEST_PORT,
    LONG_MAX,
    ConfigError,
    Unserved,
    setting,
)

ASYNC_FLUSH: Final = "ASYNC_FLUSH"
SYNC_FLUSH: Final = "SYNC_FLUSH"
ASYNC_MASTER: Final = "ASYNC_MASTER"
SYNC_MASTER: Final = "SYNC_MASTER"
SLAVE: Final = "SLAVE"
ALL_ADDRESSES: Final = ("0.0.0.0/0", "::/0")
_ROLES: Final = (ASYNC_MASTER, SYNC_MASTER, SLAVE)
_UNIT_BYTES: Final = 20
_BATCH_UNIT_BYTES: Final = 46
_LEAST_LOG_FILE_BYTES: Final = 4096
_TIMER_PRECISIONS_MS: Final = (100, 200, 500, 1_000)


@dataclass(frozen=True)
class StoreConfig:
    """The settings of a store. Sizes are in bytes, times and intervals in milliseconds, ratios in
    percent, unless the text of a field says otherwise.
    """

    IGNORED: ClassVar[Mapping[str, str | None]] = STORE_KEYS
    UNSERVED: ClassVar[tuple[Unserved, ...]] = STORE_UNSERVED

    # Places and sizes.
    store_path_root_dir: str = setting(os.path.join(os.path.expanduser("~"), "store"))
    """The directory of the store."""
    store_path_commit_log: str = setting("")
    """The directory of the commit log; it can only be one. Empty means commitlog in the directory
    of the store."""
    mapped_file_size_commit_log: int = setting(1024 * 1024 * 1024, least=_LEAST_LOG_FILE_BYTES)
    """The size of a file of the commit log. It cannot be changed once the store exists."""
    mapped_file_size_consume_queue: int = setting(300_000 * _UNIT_BYTES, least=_UNIT_BYTES)
    """The size of a queue's file, rounded up to a multiple of 20, for as long as the store exists.
    """
    mapper_file_size_batch_consume_queue: int = setting(
        300_000 * _BATCH_UNIT_BYTES, least=_BATCH_UNIT_BYTES
    )
    """The size of a batch queue's file, a multiple of 46, for as long as the store exists."""
    enable_consume_queue_ext: bool = setting(False)
    """Whether queues get ext files; existing ones are read in any case."""
    mapped_file_size_consume_queue_ext: int = setting(48 * 1024 * 1024, least=64)
    """The size of an ext file."""
    max_hash_slot_num: int = setting(5_000_000, least=1)
    """The number of slots of an index file. It cannot be changed once the store exists."""
    max_index_num: int = setting(20_000_000, least=2)
    """The number of items of an index file. It cannot be changed once the store exists."""

    # Putting.
    max_message_size: int = setting(4 * 1024 * 1024, live=True, least=1)
    """The size of the largest body."""
    enable_lmq: bool = setting(False)
    """Whether, with enableMultiDispatch, messages enter the light queues (LMQ) they list."""
    enable_multi_dispatch: bool = setting(False)
    """See enableLmq. Each of the two has an effect only with the other, and is refused alone."""
    max_lmq_consume_queue_num: int = setting(20_000, live=True)
    """How many light queues there may be; a message that would create one more is refused."""
    auto_message_version_on_topic_len: bool = setting(True, live=True)
    """Whether topics may have names of more than 127 bytes, in records that 4.9 cannot read."""
    message_index_enable: bool = setting(True, live=True)
    """Whether messages can be found by their keys."""
    message_delay_level: str = setting(DEFAULT_LEVELS)
    """The delay of each delay level, beginning with level 1."""
    flush_delay_offset_interval: int = setting(10_000, least=1)
    """The longest period between two writes of the progress of delayed delivery."""

    # Timer messages.
    timer_wheel_enable: bool = setting(True, live=True)
    """Whether messages with a delivery time of their own are accepted."""
    timer_precision_ms: int = setting(1_000)
    """The precision of delivery times of timer messages: 100, 200, 500 or 1000."""
    timer_max_delay_sec: int = setting(3 * 24 * 3600, live=True)
    """How far in the future the delivery time of a timer message may be, in seconds."""
    timer_roll_window_slot: int = setting(2 * 24 * 3600, least=-INT_MAX - 1)
    """How far ahead a message is put into the timer wheel, in units of timerPrecisionMs; a message
    that is due later is written to the log again on its way. A value below 2 or above 604740 means
    604740."""
    timer_stop_enqueue: bool = setting(False, live=True)
    """Whether timer messages are only stored, and not put into the wheel, while this is on."""
    timer_stop_dequeue: bool = setting(False, live=True)
    """Whether timer messages are not delivered until this is switched off again."""
    timer_congest_num_each_slot: int = setting(2_147_483_647, live=True, least=1)
    """When more messages than this are due at the same time, some further ones are refused, and
    beyond twice as many all of them."""
    timer_flush_interval_ms: int = setting(1_000, live=True, least=1)
    """The period between two flushes of the timer log, the wheel and the progress of timers."""
    mapped_file_size_timer_log: int = setting(100 * 1024 * 1024, least=_LEAST_LOG_FILE_BYTES)
    """The size of a file of the timer log; after a change the log is built anew."""
    append_topic_for_timer_delete_key: bool = setting(False, live=True)
    """Whether the key by which a timer message is withdrawn contains its topic."""

    # Getting.
    max_transfer_bytes_on_message_in_memory: int = setting(256 * 1024, live=True, least=1)
    """How many bytes of recent messages a pull returns at most."""
    max_transfer_count_on_message_in_memory: int = setting(32, live=True, least=1)
    """How many recent messages a pull returns at most."""
    max_transfer_bytes_on_message_in_disk: int = setting(64 * 1024, live=True, least=1)
    """How many bytes of older messages a pull returns at most."""
    max_transfer_count_on_message_in_disk: int = setting(8, live=True, least=1)
    """How many older messages a pull returns at most."""
    access_message_in_memory_max_ratio: int = setting(40, live=True, most=100)
    """A message counts as recent as long as what was stored after it is less than this share of the
    machine's memory, in percent."""
    max_filter_message_size: int = setting(16_000, live=True, least=20)
    """How many bytes of queue units a pull with a filter examines at most."""
    travel_cq_file_num_when_get_message: int = setting(1, live=True, least=1)
    """How many files of a queue a pull examines at most."""
    max_msgs_num_batch: int = setting(64, live=True, least=1)
    """How many messages a query by key returns at most."""
    default_query_max_num: int = setting(32, live=True, least=1)
    """How many messages a query by key returns if it does not name a number."""
    read_un_committed: bool = setting(False)
    """Whether, with SYNC_FLUSH, consumers see messages that are not durable yet."""

    # Durability.
    flush_disk_type: str = setting(ASYNC_FLUSH)
    """ASYNC_FLUSH, or SYNC_FLUSH: a send is answered when its message is durable."""
    flush_interval_commit_log: int = setting(500, live=True, least=1)
    """The period between two flushes of the commit log with ASYNC_FLUSH."""
    sync_flush_timeout: int = setting(5_000, live=True, least=1)
    """How long a send waits for its flush with SYNC_FLUSH."""
    flush_interval_consume_queue: int = setting(1_000, live=True, least=1)
    """The period of flushing the queues that have flushConsumeQueueLeastPages new pages."""
    flush_consume_queue_least_pages: int = setting(2, live=True)
    """See flushIntervalConsumeQueue; a page has 4096 bytes."""
    flush_consume_queue_thorough_interval: int = setting(60_000, live=True, least=1)
    """The period between two flushes of all queues and the checkpoint."""

    # Recovery.
    check_crc_on_recover: bool = setting(True, java="checkCRCOnRecover")
    """Whether recovery computes the CRC of bodies."""

    # Retention.
    file_reserved_time: int = setting(72, live=True)
    """How long files of the commit log are kept, in hours."""
    delete_when: str = setting("04", live=True)
    """The hours of the day, in local time and separated by semicolons, at which files are deleted
    that are older than fileReservedTime."""
    clean_resource_interval: int = setting(10_000, live=True, least=1)
    """The period between two searches for files to delete."""
    delete_file_batch_max: int = setting(10, live=True, least=1)
    """How many files of the commit log are deleted at a time."""
    disk_max_used_space_ratio: int = setting(75, live=True, most=100)
    """When the disk is fuller than this, old files of the commit log are deleted at any hour."""
    disk_space_clean_forcibly_ratio: int = setting(85, live=True, most=100)
    """On a disk fuller than this, younger files of the commit log are deleted as well; 30 to 85."""
    disk_space_warning_level_ratio: int = setting(90, live=True, most=100)
    """When the disk is fuller than this, nothing more is stored; 35 to 90."""
    clean_file_forcibly_enable: bool = setting(True, live=True)
    """Whether diskSpaceCleanForciblyRatio applies."""
    disk_space_min_free_bytes: int = setting(0, live=True, most=LONG_MAX)
    """Not a setting of the original. If it is above 0, the three ratios do not apply: nothing more
    is stored when less than this is free; younger files of the commit log are deleted when less
    than twice as much is free, and old files at any hour when less than four times as much is."""

    # Replication.
    broker_role: str = setting(ASYNC_MASTER)
    """ASYNC_MASTER, SYNC_MASTER or SLAVE."""
    in_sync_replicas: int = setting(0, live=True)
    """How many brokers, counting the master, must have a message before its sender is told that it
    is stored, with SYNC_MASTER, as in 5.x. 1 means that no slave is waited for. 0 is not a value of
    the original and means the same as in 4.9: one slave is waited for if there is any; or with
    enableControllerMode, all brokers in sync."""
    min_in_sync_replicas: int = setting(1, live=True, least=1)
    """With enableAutoInSyncReplicas: how many brokers, master included, must have a message. With
    enableControllerMode: while fewer brokers than this are in sync, sends are refused."""
    enable_auto_in_sync_replicas: bool = setting(False, live=True)
    """Whether fewer brokers than inSyncReplicas are enough while fewer are in sync, but no fewer
    than minInSyncReplicas; with SYNC_MASTER and enableSlaveActingMaster. While even fewer are in
    sync, sends are refused."""
    total_replicas: int = setting(1, least=1)
    """How many brokers have this name, counting the master. With more than one, a broker with
    enableSlaveActingMaster registers only when master and slaves have found each other."""
    offset_check_in_slave: bool = setting(False, live=True)
    """Whether a slave corrects offsets that are out of range."""
    slave_timeout: int = setting(3_000, live=True, least=1)
    """How long a send waits for slaves with SYNC_MASTER; with SYNC_FLUSH it is syncFlushTimeout if
    that is longer."""
    ha_slave_fallbehind_max: int = setting(268_435_456, live=True, most=LONG_MAX)
    """With SYNC_MASTER and without inSyncReplicas, a send waits for a slave only if one lacks less
    than this of the log; else it is told at once that no slave is available."""
    ha_max_gap_not_in_sync: int = setting(268_435_456, live=True, most=LONG_MAX)
    """A slave that lacks less than this of the log is shown as in sync."""
    ha_listen_port: int = setting(0, most=LARGEST_PORT)
    """The port for slaves; 0 means listenPort + 1, or any free port if listenPort is 0. If it is
    taken and was not named here, no slaves are served."""
    ha_bind_address: str = setting("")
    """Not in the original: the address on which slaves are served; empty means bindAddress."""
    ha_allowed_addresses: tuple[str, ...] = setting(ALL_ADDRESSES)
    """Not a setting of the original: the addresses and networks from which slaves may connect,
    separated by semicolons. Whoever may connect can read all messages: slaves do not prove who they
    are, and nothing is encrypted. By default, all may, as in the original, unless requests are
    accepted only with a certificate or from an account: then no slaves are served before this is
    set. If it is empty, none are, and the port is not opened."""
    ha_master_address: str = setting("")
    """Where a slave connects to its master: the master's address for replication, "host:port".
    Empty means that name servers are asked; they are asked for the master's other address anyway.
    """
    ha_report_durable: bool = setting(False, live=True)
    """Not in the original: whether a slave reports messages only when they are on its disk. Then a
    message that a SYNC_MASTER has confirmed is on two disks, or on the disk of the slave if the
    master has ASYNC_FLUSH."""
    ha_truncate: bool = setting(False)
    """Not in the original: whether a slave whose last messages its master lacks cuts them off,
    keeps them in lost/ in its store, and starts again. If not, it does not follow, and says why."""
    ha_send_heartbeat_interval: int = setting(5_000, live=True, least=1)
    """After how long without anything to send master and slave tell each other that they live."""
    ha_housekeeping_interval: int = setting(20_000, live=True, least=1)
    """After how long without hearing anything a connection between master and slave is closed."""
    ha_transfer_batch_size: int = setting(32_768, live=True, least=1, most=4 * 1024 * 1024 - 12)
    """How many bytes of the log a master sends in one frame."""
    ha_flow_control_enable: bool = setting(False, live=True)
    """Whether maxHaTransferByteInSecond applies."""
    max_ha_transfer_byte_in_second: int = setting(104_857_600, live=True, least=1, most=LONG_MAX)
    """How many bytes a master sends to each slave in a second, if haFlowControlEnable is on."""
    all_ack_in_sync_state_set: bool = setting(False)
    """With enableControllerMode: whether sends wait for all in sync, despite inSyncReplicas."""
    ha_max_time_slave_not_catchup: int = setting(15_000, live=True, least=1)
    """With enableControllerMode: a slave that has not had all of the log for so long leaves the
    brokers in sync."""
    async_learner: bool = setting(False)
    """With enableControllerMode: whether this broker as a slave never counts as in sync, so that no
    send waits for it and it becomes no master."""
    store_path_epoch_file: str = setting("")
    """With enableControllerMode: the file with the terms of masters that the log is made of. Empty
    means epochFileCheckpoint in the directory of the store."""
    store_path_broker_identity: str = setting("")
    """With enableControllerMode: the file with the id that a controller has given this broker.
    Empty means brokerIdentity in the directory of the store."""
    sync_from_last_file: bool = setting(False, live=True)
    """Whether a slave with an empty log gets only what is in the last file of the master's log and
    later, as it does from original masters unless they have a controller; otherwise it gets all."""

    def __post_init__(self) -> None:
        """Checks the settings; raises ConfigError when they cannot be used."""
        if self.flush_disk_type not in (ASYNC_FLUSH, SYNC_FLUSH):
            raise ConfigError(
                f"flushDiskType must be {ASYNC_FLUSH} or {SYNC_FLUSH}, not {self.flush_disk_type!r}"
            )
        if self.broker_role not in _ROLES:
            raise ConfigError(
                f"brokerRole must be one of {', '.join(_ROLES)}, not {self.broker_role!r}"
            )
        if self.ha_master_address and not is_host_and_port(self.ha_master_address):
            raise ConfigError(
                "haMasterAddress must be an address like 192.168.0.1:10912, not"
                f" {self.ha_master_address!r}"
            )
        if self.in_sync_replicas > 1 and self.broker_role == ASYNC_MASTER:
            raise ConfigError(
                f"inSyncReplicas={self.in_sync_replicas} has an effect only with"
                f" brokerRole={SYNC_MASTER}: an {ASYNC_MASTER} waits for no slave"
            )
        try:
            Networks(self.ha_allowed_addresses)
        except ValueError as error:
            raise ConfigError(
                "haAllowedAddresses must be addresses and networks like 10.0.0.5;10.1.0.0/16;"
                f"2001:db8::/32, not {str(error)!r}"
            ) from None
        if self.enable_lmq != self.enable_multi_dispatch:
            raise ConfigError(
                "enableLmq and enableMultiDispatch have an effect only together; set both or"
                " neither"
            )
        if "," in self.store_path_commit_log:
            raise ConfigError(
                f"storePathCommitLog must be one directory here, not {self.store_path_commit_log!r}"
            )
        if self.timer_precision_ms not in _TIMER_PRECISIONS_MS:
            raise ConfigError(
                f"timerPrecisionMs must be 100, 200, 500 or 1000, not {self.timer_precision_ms}"
            )
        if self.mapper_file_size_batch_consume_queue % _BATCH_UNIT_BYTES:
            raise ConfigError(
                "mapperFileSizeBatchConsumeQueue must be a multiple of 46 bytes, not"
                f" {self.mapper_file_size_batch_consume_queue}"
            )
        self.delete_hours()
        self.delay_levels_ms()

    @property
    def consume_queue_file_bytes(self) -> int:
        """The size of a queue file in whole units, rounded as by MessageStoreConfig."""
        return -(-self.mapped_file_size_consume_queue // _UNIT_BYTES) * _UNIT_BYTES

    def delete_hours(self) -> frozenset[int]:
        """The hours of deleteWhen."""
        hours = [text.strip() for text in self.delete_when.split(";") if text.strip()]
        if any(not hour.isdecimal() or int(hour) > 23 for hour in hours):
            raise ConfigError(f"deleteWhen must be hours from 00 to 23, not {self.delete_when!r}")
        return frozenset(map(int, hours))

    def delay_levels_ms(self) -> dict[int, int]:
        """The delay in ms of each level of messageDelayLevel."""
        return DelayLevels(self.message_delay_level).by_level()

    def beside(self, path: str, name: str) -> str:
        """A path, or if that is empty the file of this name in the directory of the store."""
        return path or os.path.join(self.store_path_root_dir, name)

    @property
    def is_slave(self) -> bool:
        return self.broker_role == SLAVE
