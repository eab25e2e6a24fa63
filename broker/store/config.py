# SPDX-License-Identifier: Apache-2.0
"""The store's settings, under the names of broker.conf.

Counterpart of store.config.MessageStoreConfig of both versions. The broker's own settings are in
`broker/config.py`; both are read from the same file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from txrocketmq.broker.store.delay_levels import DEFAULT_LEVELS, DelayLevels
from txrocketmq.broker.store.original_keys import STORE_KEYS, STORE_UNSERVED
from txrocketmq.remoting.config_file import ConfigError, Unserved, setting

ASYNC_FLUSH: Final = "ASYNC_FLUSH"
SYNC_FLUSH: Final = "SYNC_FLUSH"
SLAVE: Final = "SLAVE"
_ROLES: Final = ("ASYNC_MASTER", "SYNC_MASTER", SLAVE)
_UNIT_BYTES: Final = 20
_LEAST_LOG_FILE_BYTES: Final = 4096
_TIMER_PRECISIONS_MS: Final = (100, 200, 500, 1_000)


@dataclass(frozen=True)
class StoreConfig:
    """One store. Sizes are in bytes, times and intervals in milliseconds, ratios in percent, unless
    the text of a field says otherwise.
    """

    IGNORED: ClassVar[Mapping[str, str | None]] = STORE_KEYS
    UNSERVED: ClassVar[tuple[Unserved, ...]] = STORE_UNSERVED

    # Places and sizes.
    store_path_root_dir: str = setting(os.path.join(os.path.expanduser("~"), "store"))
    """Directory of the store."""
    store_path_commit_log: str = setting("")
    """Directory of the log, one only; empty: commitlog in the root."""
    mapped_file_size_commit_log: int = setting(1024 * 1024 * 1024, least=_LEAST_LOG_FILE_BYTES)
    """Size of a log file; what a store was created with stays."""
    mapped_file_size_consume_queue: int = setting(300_000 * _UNIT_BYTES, least=_UNIT_BYTES)
    """Size of a queue file, rounded up to units of 20; what a store was created with stays."""
    enable_consume_queue_ext: bool = setting(False)
    """Whether queues get ext files; those that exist are read all the same."""
    mapped_file_size_consume_queue_ext: int = setting(48 * 1024 * 1024, least=64)
    """Size of an ext file."""
    max_hash_slot_num: int = setting(5_000_000, least=1)
    """Slots of an index file; what a store was created with stays."""
    max_index_num: int = setting(20_000_000, least=2)
    """Items of an index file; what a store was created with stays."""

    # Putting.
    max_message_size: int = setting(4 * 1024 * 1024, live=True, least=1)
    """The largest body."""
    enable_lmq: bool = setting(False)
    """With enableMultiDispatch, whether messages enter the light queues (LMQ) that they list."""
    enable_multi_dispatch: bool = setting(False)
    """See enableLmq; neither has an effect without the other, and so is refused alone."""
    max_lmq_consume_queue_num: int = setting(20_000, live=True, least=0)
    """How many light queues there may be; a message that would make one more is refused."""
    auto_message_version_on_topic_len: bool = setting(True, live=True)
    """Whether topics of more than 127 bytes are stored, in records that 4.9 cannot read."""
    message_index_enable: bool = setting(True, live=True)
    """Whether messages are found by key."""
    message_delay_level: str = setting(DEFAULT_LEVELS)
    """The delay of each level, from 1."""
    flush_delay_offset_interval: int = setting(10_000, least=1)
    """How often the progress of delayed delivery is saved."""

    # Timer messages.
    timer_wheel_enable: bool = setting(True, live=True)
    """Whether messages with a time of their own are taken."""
    timer_precision_ms: int = setting(1_000)
    """How exact that time is: 100, 200, 500 or 1000."""
    timer_max_delay_sec: int = setting(3 * 24 * 3600, live=True, least=0)
    """How far ahead that time may be, in seconds."""
    timer_roll_window_slot: int = setting(2 * 24 * 3600)
    """How far ahead a message is put into the wheel, in units of timerPrecisionMs; one that is due
    later is put into the log again on its way. Below 2 and beyond 604740 it is 604740."""
    timer_stop_enqueue: bool = setting(False, live=True)
    """Whether timer messages are stored only, until this is off again."""
    timer_stop_dequeue: bool = setting(False, live=True)
    """Whether those that wait stay where they are, until this is off again."""
    timer_congest_num_each_slot: int = setting(2_147_483_647, live=True, least=1)
    """When more messages than this are due at one time, some more are refused, and from twice as
    many on all."""
    timer_flush_interval_ms: int = setting(1_000, live=True, least=1)
    """How often the timer log, the wheel and the progress of timers are flushed."""
    mapped_file_size_timer_log: int = setting(100 * 1024 * 1024, least=_LEAST_LOG_FILE_BYTES)
    """Size of a file of the timer log; when it is changed the log is made anew."""
    append_topic_for_timer_delete_key: bool = setting(False, live=True)
    """Whether the key that takes back a timer message is its topic and its unique key."""

    # Getting.
    max_transfer_bytes_on_message_in_memory: int = setting(256 * 1024, live=True, least=1)
    """The most a pull gets of recent messages."""
    max_transfer_count_on_message_in_memory: int = setting(32, live=True, least=1)
    """The most messages a pull gets of recent ones."""
    max_transfer_bytes_on_message_in_disk: int = setting(64 * 1024, live=True, least=1)
    """The most a pull gets of older messages."""
    max_transfer_count_on_message_in_disk: int = setting(8, live=True, least=1)
    """The most messages a pull gets of older ones."""
    access_message_in_memory_max_ratio: int = setting(40, live=True, least=0)
    """Messages are recent as long as less than this share of the memory was stored after them."""
    max_filter_message_size: int = setting(16_000, live=True, least=20)
    """How many bytes of queue units a filtered pull looks through."""
    travel_cq_file_num_when_get_message: int = setting(1, live=True, least=1)
    """How many queue files a pull looks through."""
    max_msgs_num_batch: int = setting(64, live=True, least=1)
    """The most messages a query by key gets."""
    default_query_max_num: int = setting(32, live=True, least=1)
    """The number of messages a query by key gets if it does not say."""
    read_un_committed: bool = setting(False)
    """With SYNC_FLUSH, whether consumers see messages that are not durable yet."""

    # Durability.
    flush_disk_type: str = setting(ASYNC_FLUSH)
    """ASYNC_FLUSH, or SYNC_FLUSH: a send is answered when its message is durable."""
    flush_interval_commit_log: int = setting(500, live=True, least=1)
    """How often the log is flushed with ASYNC_FLUSH."""
    sync_flush_timeout: int = setting(5_000, live=True, least=1)
    """How long a send waits for that with SYNC_FLUSH."""
    flush_interval_consume_queue: int = setting(1_000, live=True, least=1)
    """How often queues are flushed that have flushConsumeQueueLeastPages new pages."""
    flush_consume_queue_least_pages: int = setting(2, live=True, least=0)
    """See flushIntervalConsumeQueue; pages of 4096 bytes."""
    flush_consume_queue_thorough_interval: int = setting(60_000, live=True, least=1)
    """How often all queues and the checkpoint are flushed."""

    # Recovery.
    check_crc_on_recover: bool = setting(True, java="checkCRCOnRecover")
    """Whether recovery computes the CRC of bodies."""

    # Retention.
    file_reserved_time: int = setting(72, live=True, least=0)
    """Hours that log files are kept."""
    delete_when: str = setting("04", live=True)
    """Hours of the day, local time, at which older ones are deleted; separated by semicolons."""
    clean_resource_interval: int = setting(10_000, live=True, least=1)
    """How often that is looked after."""
    delete_file_batch_max: int = setting(10, live=True, least=1)
    """How many log files are deleted at a time."""
    disk_max_used_space_ratio: int = setting(75, live=True, least=0)
    """When the disk is fuller, old log files are deleted at any hour."""
    disk_space_clean_forcibly_ratio: int = setting(85, live=True, least=0)
    """When the disk is fuller, log files are deleted though not old; 30 to 85."""
    disk_space_warning_level_ratio: int = setting(90, live=True, least=0)
    """When the disk is fuller, nothing more is stored; 35 to 90."""
    clean_file_forcibly_enable: bool = setting(True, live=True)
    """See diskSpaceCleanForciblyRatio."""
    disk_space_min_free_bytes: int = setting(0, live=True, least=0)
    """Not a key of the original. Above 0 the three ratios do not count: nothing more is stored when
    less than this is free, young log files are deleted below twice as much, old ones at any hour
    below four times as much."""

    # Replication.
    broker_role: str = setting("ASYNC_MASTER")
    """ASYNC_MASTER, SYNC_MASTER or SLAVE."""
    offset_check_in_slave: bool = setting(False, live=True)
    """Whether a slave corrects offsets that are out of range."""
    ha_listen_port: int = setting(0)
    """The port for replication, as name servers are told; 0: listenPort + 1."""

    def __post_init__(self) -> None:
        """ConfigError when the settings cannot be used."""
        if self.flush_disk_type not in (ASYNC_FLUSH, SYNC_FLUSH):
            raise ConfigError(
                f"flushDiskType is {ASYNC_FLUSH} or {SYNC_FLUSH}, not {self.flush_disk_type!r}"
            )
        if self.broker_role not in _ROLES:
            raise ConfigError(f"brokerRole is one of {', '.join(_ROLES)}, not {self.broker_role!r}")
        if self.enable_lmq != self.enable_multi_dispatch:
            raise ConfigError(
                "enableLmq and enableMultiDispatch have an effect together only; set both, or none"
            )
        if "," in self.store_path_commit_log:
            raise ConfigError(
                f"storePathCommitLog is one directory here, not {self.store_path_commit_log!r}"
            )
        if self.timer_precision_ms not in _TIMER_PRECISIONS_MS:
            raise ConfigError(
                f"timerPrecisionMs is 100, 200, 500 or 1000, not {self.timer_precision_ms}"
            )
        self.delete_hours()
        self.delay_levels_ms()

    @property
    def consume_queue_file_bytes(self) -> int:
        """The size of a queue file in whole units, as MessageStoreConfig rounds it."""
        return -(-self.mapped_file_size_consume_queue // _UNIT_BYTES) * _UNIT_BYTES

    def delete_hours(self) -> frozenset[int]:
        """The hours of deleteWhen."""
        hours = [text.strip() for text in self.delete_when.split(";") if text.strip()]
        if any(not hour.isdecimal() or int(hour) > 23 for hour in hours):
            raise ConfigError(f"deleteWhen is hours from 00 to 23, not {self.delete_when!r}")
        return frozenset(map(int, hours))

    def delay_levels_ms(self) -> dict[int, int]:
        """The delay of each level of messageDelayLevel."""
        return DelayLevels(self.message_delay_level).by_level()

    @property
    def is_slave(self) -> bool:
        return self.broker_role == SLAVE
