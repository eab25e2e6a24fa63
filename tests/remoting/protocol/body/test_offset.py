# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.remoting.protocol.conftest import original_bodies
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body import offset
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.body.offset import (
    ConsumerOffsetSerializeWrapper,
    GetConsumerStatusBody,
    QueryConsumeTimeSpanBody,
    ResetOffsetBody,
)
from txrocketmq.remoting.serialize.json import encode_pretty

DERIVED = "minTimeStampStr maxTimeStampStr consumeTimeStampStr"


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(offset, nested="MessageQueueForC", derived=DERIVED)


@pytest.mark.parametrize(
    "name", ["ResetOffsetBody", "GetConsumerStatusBody", "QueryCorrectionOffsetBody"]
)
def test_tables_are_written_byte_by_byte_as_the_original_does(
    golden_version: str, name: str
) -> None:
    text = original_bodies(golden_version, "filled")[name]
    body = getattr(offset, name).decode(text.encode())
    assert body.encode().decode() == text


def test_configuration_file_is_as_5_4_writes_it() -> None:
    text = original_bodies("5.4.0", "pretty")["ConsumerOffsetSerializeWrapper"]
    pretty = text.replace("\\n", "\n").replace("\\t", "\t")
    wrapper = ConsumerOffsetSerializeWrapper.decode(pretty.encode())
    assert encode_pretty(wrapper).decode() == pretty


def test_configuration_file_of_4_9_is_read() -> None:
    text = original_bodies("4.9.7", "pretty")["ConsumerOffsetSerializeWrapper"]
    pretty = text.replace("\\n", "\n").replace("\\t", "\t")
    wrapper = ConsumerOffsetSerializeWrapper.decode(pretty.encode())
    assert wrapper.offset_table == {"offsetTableKey": {4: 10000000005, 6: 10000000007}}
    assert wrapper.data_version is None


def test_quoted_numbers_are_keys_too() -> None:
    wrapper = ConsumerOffsetSerializeWrapper.decode(b'{"offsetTable":{"t@g":{"0":5,"1":"7"}}}')
    assert wrapper.offset_table == {"t@g": {0: 5, 1: 7}}


@pytest.mark.parametrize(
    "key",
    [
        '{"brokerName":"b","queueId":1,"topic":"t"}',
        '{"brokerName":"b","queueId":1,"topic":"t","extra":[]}',
        r'"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"t\"}"',
    ],
)
def test_every_form_of_a_queue_as_key(key: str) -> None:
    body = ResetOffsetBody.decode(f'{{"offsetTable":{{{key}:5}}}}'.encode())
    assert body.offset_table == {MessageQueue("t", "b", 1): 5}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("5", "a message queue is expected, not 5"),
        ('{"queueId":1,"topic":"t"}', "a text is expected, not None in the message queue"),
        ('"x"', "a message queue is expected as key: no JSON at character 0"),
    ],
)
def test_what_is_no_queue(key: str, message: str) -> None:
    with pytest.raises(BodyError, match=message):
        ResetOffsetBody.decode(f'{{"offsetTable":{{{key}:5}}}}'.encode())


def test_tables_by_client() -> None:
    body = GetConsumerStatusBody(consumer_table={"c": {MessageQueue("t", "b", 0): 7}})
    assert body.encode() == (
        b'{"consumerTable":{"c":{{"brokerName":"b","queueId":0,"topic":"t"}:7}},'
        b'"messageQueueTable":{}}'
    )


def test_texts_of_times_are_passed_over() -> None:
    text = original_bodies("5.4.0", "filled")["QueryConsumeTimeSpanBody"]
    (span,) = QueryConsumeTimeSpanBody.decode(text.encode()).consume_time_span_set
    assert (span.min_time_stamp, span.delay_time) == (10000000007, 10000000010)
