# SPDX-License-Identifier: Apache-2.0
"""The short way stores and answers what the plain way does; nothing less, nothing else."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.broker.processors.sends import Sending
from txrocketmq.broker.processors.send_many import SPECIAL, SendManyProcessor
from txrocketmq.broker.store.config import SYNC_FLUSH
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.record import build_batch_entry
from txrocketmq.remoting.protocol.body.route import TopicConfig

KEY = "7F00000100002A139A9E5EFB7A4F0000"
USUAL = f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02TAGS\x01a"
LONG_NAMES = dict(
    zip(
        "abcdefghijklm",
        (
            "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp"
            " flag properties reconsumeTimes unitMode maxReconsumeTimes batch"
        ).split(),
        strict=True,
    )
)
PLAIN = {
    "a": "p", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "1700000000000", "h": "0",
    "i": USUAL, "j": "0", "k": "false", "l": "0", "m": "false",
}  # fmt: skip


def command(
    body: bytes = b"body",
    code: int = RequestCode.SEND_MESSAGE_V2,
    *,
    opaque: int = 1,
    flag: int = 0,
    **letters: str | None,
) -> RemotingCommand:
    """A send; None leaves a field out."""
    ext_fields = {name: text for name, text in {**PLAIN, **letters}.items() if text is not None}
    if code == RequestCode.SEND_MESSAGE:
        ext_fields = {LONG_NAMES[name]: text for name, text in ext_fields.items()}
    return RemotingCommand(code, ext_fields, body, flag=flag, opaque=opaque)


def entries(*properties: str, body: bytes = b"one") -> bytes:
    """A batch of messages with these properties."""
    return b"".join(
        build_batch_entry({"flag": 3, "body": body, "properties": text.encode()})
        for text in properties
    )


# --------------------------------------------------------------------- both ways, side by side


@contextmanager
def both(**store_settings: Any) -> Iterator[tuple[Sending, Sending]]:
    """The plain way, and the short way before it, each on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Sending(Path(folder, "plain"), short_way=False, **store_settings)
        short = Sending(Path(folder, "short"), short_way=True, **store_settings)
        for each in (plain, short):
            each.parts.topic("T")
            each.parts.topic("%RETRY%g")
            each.parts.topics.update(TopicConfig(topic_name="M", topic_filter_type="MULTI_TAG"))
        yield plain, short
        plain.close()
        short.close()


def facts(answer: RemotingCommand) -> dict[str, Any]:
    return {
        "opaque": answer.opaque,
        "code": answer.code,
        "remark": answer.remark,
        "ext_fields": answer.ext_fields,
        "flag": answer.flag,
        "body": answer.body,
        "language": answer.language,
        "version": answer.version,
    }


def units(sending: Sending) -> dict[tuple[str, int], list[Any]]:
    """What is in the queues; one that was opened for a message that was refused is empty."""
    store = sending.parts.store
    found = {
        (topic, queue_id): [tuple(unit) for unit in store.queue_units(topic, queue_id, 0, 1_000)]
        for topic in store.topics()
        for queue_id in store.queue_ids(topic)
    }
    return {queue: its for queue, its in found.items() if its}


def by_key(sending: Sending, key: str) -> list[bytes]:
    now_ms = sending.parts.now_ms
    found = sending.parts.store.query("T", key, 64, now_ms - 1_000, now_ms + 1_000)
    return [bytes(each) for each in found.buffers]


def counted(sending: Sending) -> Any:
    item = sending.parts.stats.item("TOPIC_PUT_NUMS", "T")
    return None if item is None else (item.value, item.times)


def serve_alike(plain: Sending, short: Sending, reads: list[list[RemotingCommand]]) -> None:
    """Both are told the same; they must answer and hold the same."""
    for read in reads:
        answers = []
        for each in (plain, short):
            random.seed(1)  # queues that the broker may choose
            answers.append({a.opaque: facts(a) for a in each.serve(read)})
        assert answers[1] == answers[0]
    assert short.stored() == plain.stored()
    assert units(short) == units(plain)
    assert counted(short) == counted(plain)
    assert not short.failures
    assert not plain.failures


NUMBERS = st.sampled_from(
    ["0", "1", "3", "4", "-1", "7", "", "x", "1.5", " 1", "99999999999", str(2**31), str(2**70)]
)
VALUES = st.one_of(
    st.sampled_from(["a", "a b", "true", "false", "TRUE", "", "1", KEY, "\u00e9\u4e2d\U0001f600"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
PAIRS = st.tuples(
    st.sampled_from(["UNIQ_KEY", "WAIT", "KEYS", "TAGS", "own", "\u00fc", "", *sorted(SPECIAL)]),
    VALUES,
)
PROPERTIES = st.one_of(
    st.sampled_from(
        [
            USUAL,
            USUAL + "\x02",
            f"KEYS\x01k1 k2\x02{USUAL}",
            f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true",
            f"UNIQ_KEY\x01{KEY}\x02WAIT\x01trueTAGS\x01a",
            f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02\x02",
            "WAIT\x01true\x02TAGS\x01a",
            "",
        ]
    ),
    st.lists(PAIRS, max_size=5).map(lambda pairs: "".join(f"{n}\x01{v}\x02" for n, v in pairs)),
    st.lists(PAIRS, max_size=3).map(
        lambda pairs: USUAL + "".join(f"\x02{n}\x01{v}" for n, v in pairs)
    ),
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "b": st.sampled_from(
            ["T", "New", "M", "%RETRY%g", "SELF_TEST_TOPIC", "bad name", "x" * 200]
        ),
        "c": st.sampled_from(["TBW102", "none", None]),
        "d": NUMBERS,
        "e": NUMBERS,
        "f": NUMBERS,
        "g": NUMBERS,
        "h": NUMBERS,
        "i": PROPERTIES | st.none(),
        "j": NUMBERS | st.none(),
        "k": st.sampled_from(["true", "false", "x"]),
        "l": NUMBERS | st.none(),
        "m": st.sampled_from(["true", "false", "TRUE", ""]),
        "a": st.none(),
    },
)
BODIES = st.binary(max_size=20)
BATCHES = st.one_of(
    st.lists(PROPERTIES, max_size=4).map(lambda texts: entries(*texts)),
    st.integers(1, 4).map(lambda n: entries(*[USUAL + "\x02"] * n)),
    st.tuples(st.integers(0, 90), st.just(entries(USUAL, USUAL))).map(lambda cut: cut[1][: cut[0]]),
    BODIES,
)
SINGLES = st.builds(
    lambda body, code, flag, changes: command(body, code, flag=flag, **changes),
    BODIES,
    st.sampled_from([RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2]),
    st.sampled_from([0, 0, 0, ONEWAY_FLAG]),
    CHANGES,
)
OF_BATCH = st.sampled_from(
    [
        "WAIT\x01true",
        "WAIT\x01true\x02",
        f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true",
        "DELAY\x013",
        None,
        "",
    ]
)
MANY = st.builds(
    lambda body, flag, changes, own: command(
        body, RequestCode.SEND_BATCH_MESSAGE, flag=flag, **{"m": "true", **changes, "i": own}
    ),
    BATCHES,
    st.sampled_from([0, 0, ONEWAY_FLAG]),
    CHANGES,
    OF_BATCH,
)


@hypothesis.given(st.lists(SINGLES | MANY, min_size=1, max_size=8))
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_both_ways_are_alike(commands: list[RemotingCommand]) -> None:
    with both() as (plain, short):
        serve_alike(plain, short, [[each] for each in commands])


def without_offsets(message: MessageExt) -> MessageExt:
    return dataclasses.replace(message, queue_offset=0, commit_log_offset=0)


def told(sending: Sending, read: list[RemotingCommand]) -> dict[int, Any]:
    """By opaque: the answer, with the message it is about in place of that one's offsets."""
    random.seed(1)
    answers = sending.serve(read)
    stored = {message.offset_msg_id: message for message in sending.stored()}
    result = {}
    for answer in answers:
        ext_fields = dict(answer.ext_fields or {})
        message = stored.get(ext_fields.pop("msgId", ""))
        offset = ext_fields.pop("queueOffset", None)
        if message is not None:
            assert str(message.queue_offset) == offset
            message = without_offsets(message)
        result[answer.opaque] = (answer.code, answer.remark, ext_fields, message)
    return result


@hypothesis.given(st.lists(SINGLES, min_size=2, max_size=8))
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_in_one_read_only_the_order_may_differ(commands: list[RemotingCommand]) -> None:
    for opaque, each in enumerate(commands):
        each.opaque = opaque
    with both() as (plain, short):
        assert told(short, commands) == told(plain, commands)
        ours, theirs = (
            sorted(repr(without_offsets(message)) for message in each.stored())
            for each in (short, plain)
        )
        assert ours == theirs


# ------------------------------------------------------------- what goes the short way, and how


def taken(sending: Sending, *commands: RemotingCommand) -> int:
    """How many of these commands the short way takes itself."""
    many = SendManyProcessor(sending.processor)
    _, rest = many.send_singles(sending.peer, list(commands), sending.parts.now_ms)
    return len(commands) - len(rest)


def batches_taken(sending: Sending, *commands: RemotingCommand) -> int:
    many = SendManyProcessor(sending.processor)
    _, rest = many.send_batches(sending.peer, list(commands), sending.parts.now_ms)
    return len(commands) - len(rest)


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
@pytest.mark.parametrize(
    "properties",
    [
        USUAL,
        f"KEYS\x01k\x02{USUAL}\x02",
        f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true",
        f"own\x01\u4e2d\x02{USUAL}",
    ],
)
def test_usual_messages_go_the_short_way(code: int, properties: str) -> None:
    with both() as (_, short):
        assert taken(short, command(code=code, i=properties)) == 1


@pytest.mark.parametrize("name", sorted(SPECIAL))
def test_what_the_broker_acts_on_does_not(name: str) -> None:
    with both() as (_, short):
        assert taken(short, command(i=f"{USUAL}\x02{name}\x011")) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"b": "New"},
        {"b": "%RETRY%g"},
        {"b": "M"},
        {"e": "4"},
        {"e": "-1"},
        {"m": "true"},
        {"m": "TRUE"},
        {"j": "1"},
        {"l": "x"},
        {"d": "x"},
        {"e": " 1"},
        {"f": "1_0"},
        {"g": "1 "},
        {"h": "+1"},
        {"i": None},
        {"i": "WAIT\x01true"},
    ],
)
def test_nor_what_is_not_plain(changes: dict[str, Any]) -> None:
    with both() as (_, short):
        assert taken(short, command(**changes)) == 0


def test_batches_go_the_short_way_when_each_of_their_messages_would() -> None:
    with both() as (_, short):
        code, own = RequestCode.SEND_BATCH_MESSAGE, "WAIT\x01true"
        usual = command(entries(USUAL, USUAL), code, i=own)
        without_key = command(entries(USUAL, "WAIT\x01true"), code, i=own)
        retried = command(entries(USUAL), code, i=own, j="1")
        empty = command(b"", code, i=own)
        cut = command(entries(USUAL)[:-1], code, i=own)
        assert batches_taken(short, usual) == 1
        assert batches_taken(short, without_key, retried, empty, cut) == 0


def test_a_batch_with_one_message_that_cannot_be_is_refused_as_a_whole() -> None:
    good, tag = USUAL + "\x02", "a" * 32_700
    batch = entries(good, f"UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02TAGS\x01{tag}\x02", good)
    asked = command(batch, RequestCode.SEND_BATCH_MESSAGE, m="true", i="WAIT\x01true")
    with both() as ways:
        for way in ways:
            (answer,) = way.serve([asked])
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert way.stored() == []


def test_topics_are_learnt_anew_when_they_change() -> None:
    with both() as (_, short):
        short.serve([command(e="4")])
        assert not short.stored()
        short.parts.topic("T", 5)
        short.serve([command(e="4")])
        assert len(short.stored()) == 1


def test_nobody_is_served_before_the_time_is_there() -> None:
    with both() as (plain, short):
        for each in (plain, short):
            each.parts.config.start_accept_send_request_time_stamp = each.parts.now_ms + 1
        batch = command(entries(USUAL), RequestCode.SEND_BATCH_MESSAGE, i="WAIT\x01true")
        serve_alike(plain, short, [[command()], [batch]])
        assert not short.stored()


def test_a_peer_with_ipv6_goes_the_plain_way() -> None:
    with both() as (plain, short):
        for each in (plain, short):
            each.peer.remote_host = bytes(15) + b"\x01" + (7).to_bytes(4, "big")
        batch = command(entries(USUAL), RequestCode.SEND_BATCH_MESSAGE, i="WAIT\x01true")
        serve_alike(plain, short, [[command()], [batch]])
        assert [str(message.born_host) for message in short.stored()] == ["[::1]:7"] * 2


def test_messages_are_found_by_their_keys() -> None:
    with both() as (plain, short):
        keyed = command(i=f"KEYS\x01k1 k2\x02{USUAL}")
        batch = command(entries(f"KEYS\x01k1\x02{USUAL}"), RequestCode.SEND_BATCH_MESSAGE,
                        i="WAIT\x01true")  # fmt: skip
        serve_alike(plain, short, [[keyed], [batch]])
        for key, count in (("k1", 2), ("k2", 1), (KEY, 2)):
            assert len(by_key(short, key)) == len(by_key(plain, key)) == count


def test_a_refused_message_is_answered_by_the_plain_way() -> None:
    with both(max_message_size=100) as (plain, short):
        batch = command(
            entries(USUAL, body=bytes(101)), RequestCode.SEND_BATCH_MESSAGE, i="WAIT\x01true"
        )
        serve_alike(plain, short, [[command(bytes(101)), command(opaque=2)], [batch]])
        (illegal,) = short.serve([command(bytes(101))])
        assert illegal.code == ResponseCode.MESSAGE_ILLEGAL
        assert "limit 100B" in (illegal.remark or "")


def test_a_closed_store_refuses_both_alike() -> None:
    with both() as (plain, short):
        for each in (plain, short):
            each.close()
        batch = command(entries(USUAL), RequestCode.SEND_BATCH_MESSAGE, i="WAIT\x01true")
        for asked in (command(), batch):
            answers = [facts(sending.serve([asked])[0]) for sending in (plain, short)]
            assert answers[0] == answers[1]
            assert answers[0]["code"] == ResponseCode.SERVICE_NOT_AVAILABLE


# ---------------------------------------------------------------------------------- sync flush


def test_group_commit_answers_all_sends_of_a_read_together() -> None:
    with both(flush_disk_type=SYNC_FLUSH) as (plain, short):
        read = [command(opaque=1), command(opaque=2), command(opaque=3, flag=ONEWAY_FLAG)]
        for each in (plain, short):
            assert each.serve(read) == []
            job = each.flush()
            assert each.answers() == []
            job.run()
            each.parts.store.flush.finish(job)
        ours, theirs = ([facts(a) for a in each.answers()] for each in (short, plain))
        assert [each["code"] for each in ours] == [ResponseCode.SUCCESS] * 2
        assert ours == theirs


def test_a_sync_that_takes_too_long_is_told() -> None:
    with both(flush_disk_type=SYNC_FLUSH) as (plain, short):
        for each in (plain, short):
            assert each.serve([command()]) == []
            late_ms = each.parts.now_ms + each.parts.store.config.sync_flush_timeout
            each.parts.store.flush.expire(late_ms - 1)
            assert each.answers() == []
            each.parts.store.flush.expire(late_ms)
        (ours,), (theirs,) = ([facts(a) for a in each.answers()] for each in (short, plain))
        assert ours["code"] == ResponseCode.FLUSH_DISK_TIMEOUT
        assert ours == theirs
        assert len(short.stored()) == 1


def test_batches_wait_for_the_disk_by_the_plain_way() -> None:
    with both(flush_disk_type=SYNC_FLUSH) as (plain, short):
        batch = command(entries(USUAL), RequestCode.SEND_BATCH_MESSAGE, i="WAIT\x01true")
        for each in (plain, short):
            assert each.serve([batch]) == []
            each.parts.store.flush.flush_all()
        (ours,), (theirs,) = ([facts(a) for a in each.answers()] for each in (short, plain))
        assert ours == theirs
        assert ours["code"] == ResponseCode.SUCCESS
