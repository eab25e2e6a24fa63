# SPDX-License-Identifier: Apache-2.0
"""The shortest way stores and answers what the plain way does; nothing less, nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.broker.processors.sends import Sending
from tests.broker.processors.test_send_many import (
    BODIES,
    CHANGES,
    both,
    by_key,
    counted,
    facts,
    units,
)
from tests.remoting.serialize.java_sends import KEY, USUAL, frame, header
from txrocketmq.broker.processors import send_plain
from txrocketmq.broker.store.config import SYNC_FLUSH
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand


def send(opaque: int = 1, body: bytes = b"body", **changes: Any) -> bytes:
    return frame(header(opaque, **changes), body)


def receive_alike(
    plain: Sending, short: Sending, reads: Sequence[bytes]
) -> list[list[RemotingCommand]]:
    """Both are told the same; they must answer and hold the same. What the short way answers."""
    given = []
    for read in reads:
        answers = []
        for each in (plain, short):
            random.seed(1)  # queues that the broker may choose
            answers.append(each.receive(read))
        ours, theirs = ({a.opaque: facts(a) for a in found} for found in answers)
        assert ours == theirs
        given.append(answers[1])
    assert short.stored() == plain.stored()
    assert units(short) == units(plain)
    assert counted(short) == counted(plain)
    assert not short.failures
    assert not plain.failures
    return given


class Counting:
    """How many messages the shortest way has put itself."""

    def __init__(self, sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        put_plain = sending.parts.store.put_plain

        def counting(sends: Any, *rest: Any) -> Any:
            batch = put_plain(sends, *rest)
            self.count += len(batch.offsets) if batch is not None else 0
            return batch

        monkeypatch.setattr(sending.parts.store, "put_plain", counting)


PROPERTIES = st.one_of(
    st.just(USUAL),
    st.sampled_from(["a", "a b", " ", "\u00e9", KEY]).map(lambda k: f"KEYS\x01{k}\x02{USUAL}"),
    st.sampled_from(["t", "\u4e2d", "TagA"]).map(lambda tag: f"{USUAL}\x02TAGS\x01{tag}"),
    st.text("0123456789ABCDEF", min_size=1, max_size=40).map(
        lambda key: f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02"
    ),
    st.sampled_from(["DELAY\x013", f"{USUAL}\x02own\x011", "", "WAIT\x01true"]),
)
ODD = st.builds(lambda body, changes: (body, changes), BODIES, CHANGES)
EVEN = st.builds(
    lambda body, queue, text: (body, {"e": str(queue), "i": text}),
    BODIES,
    st.integers(0, 4),
    PROPERTIES,
)


@hypothesis.given(st.lists(EVEN | EVEN | ODD, min_size=1, max_size=12), st.booleans())
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_both_ways_are_alike(asked: list[tuple[bytes, dict[str, Any]]], one_by_one: bool) -> None:
    frames = [send(opaque, body, **changes) for opaque, (body, changes) in enumerate(asked)]
    usual = all(changes.keys() <= {"e", "i"} for _, changes in asked)
    with both() as (plain, short):
        if one_by_one or not usual:
            receive_alike(plain, short, frames)
        else:  # what is handed back is served after the others: told by their bodies
            for each in (plain, short):
                answers = each.receive(b"".join(frames))
                assert sorted(a.opaque for a in answers) == list(range(len(asked)))
            ours, theirs = (
                sorted((m.queue_id, m.body, repr(m.properties)) for m in each.stored())
                for each in (short, plain)
            )
            assert ours == theirs


def test_a_read_of_plain_sends_is_put_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with both() as (plain, short):
        counting = Counting(short, monkeypatch)
        properties = [USUAL, f"KEYS\x01k1 k2\x02{USUAL}\x02TAGS\x01a", f"{USUAL}\x02TAGS\x01b"]
        read = b"".join(
            send(n, b"%d" % n, e=str(n % 3), i=properties[n % 3], g=str(1_700_000_000_000 + n // 4))
            for n in range(24)
        )
        reads = [read, read, send(1), b"".join(map(send, range(9)))]
        receive_alike(plain, short, [send(), *reads])  # the first one makes the file
        assert counting.count == 24 + 24 + 1 + 9
        for key in (KEY, "k1", "k2"):
            assert by_key(short, key) == by_key(plain, key) != []


def test_topics_and_queues_are_looked_up_anew_when_they_change() -> None:
    with both() as (plain, short):
        receive_alike(plain, short, [send(), send(e="4")])
        for each in (plain, short):
            each.parts.topic("T", 5)
        receive_alike(plain, short, [send(e="4")])
        for each in (plain, short):
            each.parts.store.delete_topic("T")
        receive_alike(plain, short, [send(), send(e="4")])
        assert units(short)["T", 1]
        assert short.parts.store.max_offset("T", 1) == 1


def test_queues_that_expired_are_made_anew() -> None:
    with both() as (plain, short):
        for each in (plain, short):
            for queue_id in (0, *[1] * 20):
                each.receive(send(e=str(queue_id), body=bytes(9_000)))
            store = each.parts.store
            store._log.files.remove_first(2)  # as retention does
            assert store.clean_expired_queues() == 1
            assert store.queue_ids("T") == [1]
            each.receive(send(e="0"))
            assert store.max_offset("T", 0) == 1
        assert units(short)["T", 0] == units(plain)["T", 0]


def test_files_of_the_log_roll_over() -> None:
    with both() as (plain, short):
        read = b"".join(send(n, bytes(3_000), e=str(n % 4)) for n in range(7))
        receive_alike(plain, short, [read] * 12)
        assert short.parts.store.max_physical_offset > 3 * 65_536


def test_messages_too_large_are_refused_alike() -> None:
    with both(max_message_size=100) as (plain, short):
        (answers, _) = receive_alike(plain, short, [send(body=bytes(101)), send(body=bytes(100))])
        assert answers[0].code == ResponseCode.MESSAGE_ILLEGAL
        assert len(short.stored()) == 1


def test_nobody_is_served_before_the_time_is_there() -> None:
    with both() as (plain, short):
        for each in (plain, short):
            each.parts.config.start_accept_send_request_time_stamp = each.parts.now_ms + 1
        ((answer,),) = receive_alike(plain, short, [send()])
        assert answer.code == ResponseCode.SYSTEM_ERROR


def test_a_peer_with_ipv6_goes_the_plain_way() -> None:
    with both() as (plain, short):
        for each in (plain, short):
            each.peer.remote_host = bytes(15) + b"\x01" + (7).to_bytes(4, "big")
        receive_alike(plain, short, [send()])
        assert [str(message.born_host) for message in short.stored()] == ["[::1]:7"]


def test_a_closed_store_refuses_alike() -> None:
    with both() as (plain, short):
        receive_alike(plain, short, [send()])
        for each in (plain, short):
            each.close()
        ours, theirs = ([facts(a) for a in each.receive(send())] for each in (short, plain))
        assert ours == theirs
        assert ours[0]["code"] == ResponseCode.SERVICE_NOT_AVAILABLE


def test_the_disk_is_waited_for_alike() -> None:
    with both(flush_disk_type=SYNC_FLUSH) as (plain, short):
        for each in (plain, short):
            assert each.receive(send(1) + send(2)) == []
            job = each.flush()
            job.run()
            assert each.answers() == []
            each.parts.store.flush.finish(job)
        ours, theirs = ([facts(a) for a in each.answers()] for each in (short, plain))
        assert ours == theirs
        assert [each["code"] for each in ours] == [ResponseCode.SUCCESS] * 2


def test_texts_that_are_no_unicode_are_stored_alike() -> None:
    with both() as (plain, short):
        odd = send(2, i=f"KEYS\x01@\x02{USUAL}\x02TAGS\x01@").replace(b"@", b"\xff")
        receive_alike(plain, short, [send(1) + odd + send(3)])
        assert len(short.stored()) == 3


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_plain, "MAX_PLACES", 3)
    with both() as (plain, short):
        reads = [send(c=f"t{n}") + send(2, c="x") for n in range(9)]
        receive_alike(plain, short, reads)
        assert 0 < len(short.shortest._places) <= 3
