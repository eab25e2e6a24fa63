# SPDX-License-Identifier: Apache-2.0
"""What the log says of light queues, beside what the broker reads in one record after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.logs import buffer_of, log_of
from tests.spark.stores import Draft
from txrocketmq.broker.store.queues.light_queues import places
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.light_queues import in_light_queues

Found = list[tuple[str, int, int, int]]
WANTED = ("%LMQ%a", "%LMQ%b")
_LISTS = st.lists(st.sampled_from((*WANTED, "%LMQ%c", "plain", "")), max_size=3).map(",".join)
_OFFSETS = st.lists(st.sampled_from(("0", "7", "12", "-1", "x", "", "٣")), max_size=3).map(",".join)
_PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        names.INNER_MULTI_DISPATCH: _LISTS,
        "INNER_MULTI_DISPATCX": _LISTS,
        names.INNER_MULTI_QUEUE_OFFSET: _OFFSETS,
        "TAGS": st.just("t"),
    },
)
_DRAFTS = st.builds(
    Draft,
    topic=st.sampled_from(("T", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", *WANTED)),
    queue_id=st.integers(0, 1),
    properties=_PROPERTIES,
)


def _of(drafts: list[Draft]) -> tuple[Records, Found]:
    """Records, and what is to be found in them: queue, number of the queue, offset and place."""
    log = log_of(drafts)
    records = Records(buffer_of(log.data), np.array(log.starts, np.int64), log.first_offset)
    expected = []
    for parsed, draft in zip(log.parsed, drafts, strict=True):
        values = decode_properties(parsed.properties.decode())
        listed = [
            values.get(names.INNER_MULTI_DISPATCH),
            values.get(names.INNER_MULTI_QUEUE_OFFSET),
        ]
        found = [(draft.topic, parsed.queue_offset), *places(draft.topic, *listed)]
        expected += [(name, 0, at, parsed.physical_offset) for name, at in found if name in WANTED]
    return records, expected


def _found(records: Records) -> Found:
    found: Found = []
    for each in in_light_queues(records, WANTED.__contains__):
        codes, topics = each.topics()
        columns = (each.queue_id, each.queue_offset, each.physical_offset)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found += [(topics[code], *row) for code, row in zip(codes, rows, strict=True)]
    return found


@given(st.lists(_DRAFTS, max_size=12))
def test_the_log_is_read_as_the_broker_reads_it(drafts: list[Draft]) -> None:
    records, expected = _of(drafts)
    found = _found(records)
    assert sorted(found) == sorted(expected)
    for name in WANTED:
        of_queue = [row[3] for row in found if row[0] == name]
        assert of_queue == sorted(of_queue), "in the order of the log"


def test_only_what_says_where_it_is_is_found() -> None:
    topics = ("T", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "T", "T")
    lists = ("7,8", "7,8", "7,8", "7,8", "7", "x,8")
    drafts = [
        Draft(
            topic,
            properties={
                names.INNER_MULTI_DISPATCH: "%LMQ%a,%LMQ%c",
                names.INNER_MULTI_QUEUE_OFFSET: offsets,
            },
        )
        for topic, offsets in zip(topics, lists, strict=True)
    ]
    records, expected = _of(drafts)
    assert _found(records) == expected == [("%LMQ%a", 0, 7, 0)]


@pytest.mark.parametrize("drafts", [[], [Draft()], [Draft("%LMQ%c")]])
def test_where_there_is_nothing_nothing_is_found(drafts: list[Draft]) -> None:
    assert _found(_of(drafts)[0]) == []
