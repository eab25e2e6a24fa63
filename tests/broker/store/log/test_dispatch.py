# SPDX-License-Identifier: Apache-2.0
"""What follows from records is the same whoever says it: the log's encoder, or reput."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st

from tests.broker.store.batches import batched, kind_of
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage
from txrocketmq.broker.store.formats.scan import RecordWalk
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.dispatch import Dispatchers, Following
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import may_enter_light_queues

NOW_MS = 1_700_000_000_000
HALF = MessageSysFlag.TRANSACTION_PREPARED_TYPE
COMMITTED = MessageSysFlag.TRANSACTION_COMMIT_TYPE
ROLLED_BACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["A", "B", "\u00e9", "%LMQ%a", "%RETRY%A", "Batches"]),
            "queue_id": st.integers(0, 1),
            "body": st.binary(max_size=30),
            "uniq_key": st.none() | st.sampled_from(["7F0001", "7F0002", "k"]),
            "keys": st.none() | st.sampled_from(["k1", "k1 k2"]),
            "tags": st.none() | st.sampled_from(["a", "tag"]),
            "sys_flag": st.sampled_from([0, 0, 0, HALF, COMMITTED, ROLLED_BACK]),
            "size": st.integers(0, 4),
            "light": st.lists(st.sampled_from(["%LMQ%a", "%LMQ%b"]), unique=True),
        }
    ),
    min_size=1,
    max_size=12,
)


def facts(following: Following) -> Any:
    units: dict[tuple[str, int], list[Any]] = {}
    for queue, first, fields in following.units:
        place = units.setdefault((queue.topic, queue.queue_id), [])
        place.append((first, *fields))
    copies: dict[str, list[Any]] = {}
    for queue, first, fields in following.copies:
        for at in range(0, len(fields), 3):
            unit = first + at // 3, *fields[at : at + 3]
            copies.setdefault(f"{queue.topic}/{queue.queue_id}", []).append(unit)
    return following.start_offset, following.end_offset, following.entries, units, copies


def built(
    message: Callable[..., PutMessage], light: list[str], size: int, **fields: Any
) -> PutMessage:
    """A message that the intake has marked, if it lists light queues and its topic takes part.

    To a topic of batches it is one, unless its size is 0.
    """
    made = message(**fields, tags_code=tags_code(fields["tags"]))
    if made.topic == "Batches":
        return batched(made, [b"x"] * size) if size and not made.sys_flag else made
    if not light or not may_enter_light_queues(made.topic):
        return made
    text = b"INNER_MULTI_DISPATCH\x01%s\x02" % ",".join(light).encode()
    flag = made.sys_flag | MULTI_DISPATCH
    return made._replace(properties=made.properties + text, sys_flag=flag)


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(st.lists(MESSAGES, min_size=1, max_size=3))
def test_the_encoder_and_reput_say_the_same(
    files: Any,
    config: Callable[..., StoreConfig],
    message: Callable[..., PutMessage],
    runs: list[list[dict[str, Any]]],
) -> None:
    disk = type(files)()
    light = {"enable_lmq": True, "enable_multi_dispatch": True}
    settings = config(mapped_file_size_commit_log=1 << 16, **light)
    log, queues = CommitLog(disk, settings), ConsumeQueues(disk, settings)
    queues.kind_of = kind_of
    index = Index(disk, "/index", settings.max_hash_slot_num, settings.max_index_num)
    reput = Reput(settings, log, queues, Dispatchers(settings, index))
    for run in runs:
        batch = log.encode(
            [built(message, **each) for each in run],
            queues,
            NOW_MS,
        )
        start = batch.start_offset
        log.write(batch)
        (file,) = log.files.mapped_files
        records = list(RecordWalk(file, start, check_crc=True))
        assert facts(reput.follow(records)) == facts(batch)
