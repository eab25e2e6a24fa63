# SPDX-License-Identifier: Apache-2.0
"""The fixed formats of a store directory besides the record, as declarations in construct.

The record itself and the blank that ends a commit-log file are `remoting.message.record`'s. Hot
codecs and numpy dtypes are derived with `remoting.packing`. Field names are those of the original
in snake_case; integers are signed and big-endian; offsets are bytes in the commit log and
timestamps milliseconds since the epoch unless the field says otherwise.

Java: ConsumeQueue, ConsumeQueueExt, BatchConsumeQueue, IndexHeader, IndexFile, StoreCheckpoint,
timer.Slot, TimerLog, TimerCheckpoint, EpochFileCache.
"""

from __future__ import annotations

from typing import Final

from construct import Bytes, Int16sb, Int32sb, Int64sb, Struct, this

# --- consumequeue/<topic>/<queueId>/<offset> ---

CONSUME_QUEUE_UNIT = Struct(
    "physical_offset" / Int64sb,
    "size" / Int32sb * "of the record in bytes; 0 in a unit never written",
    "tags_code" / Int64sb * "hash of the tag, or delivery time, or address in the ext file",
)
"""20 bytes; the unit's index in the queue is the message's queue offset."""

CONSUME_QUEUE_PRE_BLANK_SIZE: Final = 0x7FFFFFFF
"""The `size` of the units before the first message of a queue that starts at an index above 0."""

# --- consumequeue_ext/<topic>/<queueId>/<offset> ---

CONSUME_QUEUE_EXT_HEAD = Struct(
    "size" / Int16sb * "of the unit in bytes, itself and the bitmap included",
    "tags_code" / Int64sb,
    "store_time" / Int64sb * "ms",
    "bitmap_size" / Int16sb * "bytes",
)

CONSUME_QUEUE_EXT_UNIT = Struct(
    *CONSUME_QUEUE_EXT_HEAD.subcons,
    "bitmap" / Bytes(this.bitmap_size) * "Bloom filter result, bits from the low end of each byte",
)
"""The address of such a unit is in `tags_code` of the queue's unit: CONSUME_QUEUE_EXT_ADDRESS_BASE
plus its byte offset."""

CONSUME_QUEUE_EXT_END: Final = -1
"""`size` where the rest of the file is unused; a file keeps at least 4 bytes for it."""
CONSUME_QUEUE_EXT_END_BYTES: Final = 4
CONSUME_QUEUE_EXT_ADDRESS_BASE: Final = -(1 << 63)
CONSUME_QUEUE_EXT_ADDRESS_MAX: Final = -(1 << 31) - 1
"""A `tags_code` up to this is an address in the ext file: no hash of a tag is so small."""

# --- batchconsumequeue/<topic>/<queueId>/<offset> ---

BATCH_CONSUME_QUEUE_UNIT = Struct(
    "physical_offset" / Int64sb,
    "size" / Int32sb * "of the record in bytes",
    "tags_code" / Int64sb,
    "store_time" / Int64sb * "ms",
    "msg_base_offset" / Int64sb * "queue offset of the first message of the batch",
    "batch_size" / Int16sb * "messages",
    "compacted_offset" / Int32sb * "-1",
    "reserved" / Int32sb,
)
"""46 bytes."""

# --- index/<yyyyMMddHHmmssSSS>: header, then slots, then items ---

INDEX_HEADER = Struct(
    "begin_timestamp" / Int64sb * "store timestamp of the first item",
    "end_timestamp" / Int64sb,
    "begin_physical_offset" / Int64sb,
    "end_physical_offset" / Int64sb,
    "hash_slot_count" / Int32sb * "slots in use",
    "index_count" / Int32sb * "number of the next item; the first is 1",
)
"""40 bytes."""

INDEX_SLOT = Struct("newest_item" / Int32sb * "number of the newest item of this slot; 0: none")

INDEX_ITEM = Struct(
    "key_hash" / Int32sb * "Java hash of topic#key without the sign",
    "physical_offset" / Int64sb,
    "seconds_since_begin" / Int32sb,
    "previous_item" / Int32sb * "number of the next older item of the slot; 0: none",
)
"""20 bytes."""

# --- checkpoint: 4096 bytes of which the first are used ---

CHECKPOINT_FILE_BYTES: Final = 4096

CHECKPOINT_V4 = Struct(
    "physic_msg_timestamp" / Int64sb,
    "logics_msg_timestamp" / Int64sb,
    "index_msg_timestamp" / Int64sb,
)
"""24 bytes, as 4.9 writes them."""

CHECKPOINT = Struct(
    *CHECKPOINT_V4.subcons,
    "master_flushed_offset" / Int64sb,
    "confirm_physical_offset" / Int64sb,
)
"""40 bytes, as 5.x writes them; the two more are 0 in a file of 4.9."""

# --- timerwheel, timerlog/<offset>, config/timercheck (5.x) ---

TIMER_WHEEL_SLOT = Struct(
    "time" / Int64sb * "delivery time in units of the wheel's precision, not ms",
    "first_pos" / Int64sb * "in the timer log; -1: none",
    "last_pos" / Int64sb * "in the timer log; -1: none",
    "num" / Int32sb * "messages",
    "magic" / Int32sb * "unused",
)
"""32 bytes."""

TIMER_WHEEL_SLOTS: Final = 2 * 7 * 86_400

TIMER_LOG_UNIT = Struct(
    "size" / Int32sb * "52",
    "prev_pos" / Int64sb * "of the unit before in the slot's chain, in the timer log; -1: none",
    "magic" / Int32sb * "TIMER_MAGIC_* bits",
    "curr_write_time" / Int64sb * "ms",
    "delayed_time" / Int32sb * "ms after curr_write_time",
    "physical_offset" / Int64sb,
    "physical_size" / Int32sb * "of the record in bytes",
    "real_topic_hash" / Int32sb * "Java hash of the real topic",
    "reserved" / Int64sb,
)
"""52 bytes."""

TIMER_MAGIC_DEFAULT: Final = 1
TIMER_MAGIC_ROLL: Final = 2
TIMER_MAGIC_DELETE: Final = 4

TIMER_LOG_BLANK = Struct(
    "room" / Int32sb * "bytes from the start of this blank to the end of the file",
    "prev_pos" / Int64sb * "0",
    "magic" / Int32sb * "MAGIC_BLANK of the record",
)
"""16 bytes, at the end of a timer-log file that had no room for one more unit and a blank."""

TIMER_CHECK = Struct(
    "last_read_time_ms" / Int64sb,
    "last_timer_log_flush_pos" / Int64sb,
    "last_timer_queue_offset" / Int64sb,
    "master_timer_queue_offset" / Int64sb,
    "state_version" / Int64sb * "of the DataVersion, as the next two",
    "timestamp" / Int64sb,
    "counter" / Int64sb,
)
"""56 bytes at the start of a 4096-byte file; also the answer of GET_TIMER_CHECK_POINT."""

TIMER_CHECK_FILE_BYTES: Final = 4096

# --- epochs of the controller mode (5.x) ---

EPOCH_ENTRY = Struct("epoch" / Int32sb, "start_offset" / Int64sb)
"""12 bytes, as HA handshakes carry it; the file epochFileCheckpoint is text, not this."""
