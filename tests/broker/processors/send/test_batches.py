# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.processors.sends import Sending
from tests.fakes import FakePeer
from txrocketmq.broker.processors.send import batches
from txrocketmq.broker.processors.send.batches import MANY
from txrocketmq.broker.work.walks import SLICE_S
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

LONG = 3 * MANY
SINGLE, BATCH = 10, 320


class Turns:
    """A broker's sends, whose later turns are the test's."""

    def __init__(self, folder: Path, **store_settings: Any) -> None:
        self.sending = Sending(
            folder,
            mapped_file_size_consume_queue=20 * 2_000,
            mapped_file_size_commit_log=1 << 20,
            **store_settings,
        )
        self.parts = self.sending.parts
        self.later: list[Callable[[], None]] = []
        self.parts.walks._later = self.later.append
        self._now_s = 0.0
        self.parts.walks.timer = self._timer
        self.parts.topic("T", 4)

    def _timer(self) -> float:
        self._now_s += SLICE_S
        return self._now_s

    def serve(self, *commands: RemotingCommand, peer: FakePeer | None = None) -> int:
        """How many of the commands of one read were served."""
        return self.sending.dispatcher.serve(
            peer or self.sending.peer, list(commands), lambda: not (peer or self.sending.peer).works
        )

    def run(self) -> list[RemotingCommand]:
        """Runs all later turns; returns the answers."""
        while self.later:
            self.later.pop(0)()
        return self.sending.answers()


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Turns]:
    found = Turns(tmp_path)
    yield found
    assert found.sending.failures == []
    found.sending.close()


def request(
    code: int,
    body: bytes,
    *,
    topic: str = "T",
    properties: str = "UNIQ_KEY\x01k\x02",
    flag: int = 0,
) -> RemotingCommand:
    header = SendMessageRequestHeader(
        producer_group="p", topic=topic, default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=0, sys_flag=0, born_timestamp=1, flag=0, properties=properties,
        batch=code == BATCH,
    )  # fmt: skip
    return RemotingCommand(code, header.encode(), body, flag=flag)


def fields_of(answer: RemotingCommand) -> Mapping[str, str]:
    assert answer.ext_fields is not None
    return answer.ext_fields


def body_of(count: int, **properties: str) -> bytes:
    return encode_batch([Message("T", b"%d" % n, properties=properties) for n in range(count)])


def test_a_long_batch_lies_in_one_piece_though_others_send_meanwhile(turns: Turns) -> None:
    assert turns.serve(request(BATCH, body_of(LONG, KEYS="a"))) == 1
    other = FakePeer(2)
    for _ in range(5):
        turns.later.pop(0)()
        turns.serve(request(SINGLE, b"other"), peer=other)
    (answer,) = turns.run()
    assert answer.code == ResponseCode.SUCCESS
    stored = turns.sending.stored()
    assert [each.queue_offset for each in stored] == list(range(LONG + 5))
    first = int(fields_of(answer)["queueOffset"])
    assert first >= 5
    assert [each.body for each in stored[first:]] == [b"%d" % n for n in range(LONG)]
    ids = fields_of(answer)["msgId"].split(",")
    assert ids == [each.offset_msg_id for each in stored[first:]]
    assert turns.parts.store._index.waiting == 0
    assert turns.parts.store.max_offset("T", 0) == LONG + 5


def test_the_last_step_of_a_long_batch_reserves_nothing(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = turns.parts.store
    turns.serve(request(SINGLE, b"before"))
    (file,) = store._log.files.mapped_files
    put, rooms = turns.parts.intake.put, list[tuple[int, int]]()

    def seen(messages: Any, now_ms: int) -> Any:
        before = file.reserved_bytes
        batch = put(messages, now_ms)
        rooms.append((before, file.reserved_bytes))
        return batch

    monkeypatch.setattr(turns.parts.intake, "put", seen)
    turns.serve(request(BATCH, encode_batch([Message("T", bytes(300))] * LONG)))
    assert rooms == []
    turns.run()
    ((before, after),) = rooms
    assert before == after >= file.wrote_bytes > LONG * 300


def test_nothing_of_its_peer_overtakes_it(turns: Turns) -> None:
    before, long = request(SINGLE, b"before"), request(BATCH, body_of(LONG))
    after = request(SINGLE, b"after")
    assert turns.serve(before, long, after) == 2
    peer = turns.sending.peer
    assert (peer.works, peer.waiting_bytes) == (2, len(long.body))
    assert turns.serve(request(BATCH, body_of(LONG)), peer=FakePeer(2)) == 1
    turns.run()
    assert (peer.works, peer.waits, peer.waiting_bytes) == (0, 0, 0)
    turns.serve(after)
    assert [each.queue_offset for each in turns.sending.stored()] == list(range(2 * LONG + 2))
    bodies = [each.body for each in turns.sending.stored()]
    assert (bodies[0], bodies[1], bodies[-1]) == (b"before", b"0", b"after")


def test_a_long_batch_makes_its_topic_when_it_is_stored(turns: Turns) -> None:
    turns.serve(request(BATCH, body_of(LONG), topic="new"))
    assert "new" not in turns.parts.topics.all()
    turns.run()
    assert "new" in turns.parts.topics.all()
    assert turns.parts.store.max_offset("new", 0) == LONG


def test_a_long_batch_whose_topic_has_gone_meanwhile_is_refused(turns: Turns) -> None:
    turns.parts.set(auto_create_topic_enable=False)
    turns.serve(request(BATCH, body_of(LONG)))
    turns.later.pop(0)()
    turns.parts.topics._topics.pop("T")
    (answer,) = turns.run()
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert turns.parts.store.max_physical_offset == 0


def test_a_late_message_that_is_broken_refuses_all(turns: Turns) -> None:
    turns.serve(request(BATCH, body_of(LONG)[:-1]))
    (answer,) = turns.run()
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "the batch is broken" in (answer.remark or "")
    assert turns.parts.store.max_physical_offset == 0


def test_a_batch_for_light_queues_may_not_be_long(tmp_path: Path) -> None:
    turns = Turns(tmp_path, enable_lmq=True, enable_multi_dispatch=True)
    turns.serve(request(BATCH, body_of(MANY, INNER_MULTI_DISPATCH="%LMQ%a")))
    (answer,) = turns.run()
    assert answer.code == ResponseCode.SUCCESS
    before = turns.parts.store.max_physical_offset
    turns.serve(request(BATCH, body_of(MANY + 1, INNER_MULTI_DISPATCH="%LMQ%a")))
    (answer,) = turns.run()
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert f"enter light queues, may have at most {MANY} messages" in (answer.remark or "")
    assert turns.parts.store.max_physical_offset == before
    turns.sending.close()


def test_none_of_a_batch_is_stored_if_one_of_its_light_queues_is_one_too_many(
    tmp_path: Path,
) -> None:
    turns = Turns(
        tmp_path, enable_lmq=True, enable_multi_dispatch=True, max_lmq_consume_queue_num=2
    )
    light = [Message("T", b"x", properties={"INNER_MULTI_DISPATCH": f"%LMQ%{n}"}) for n in range(3)]
    turns.serve(request(SINGLE, b"x"), request(BATCH, encode_batch([Message("T", b"y"), *light])))
    answers = turns.run()
    answer, single = sorted(answers, key=lambda each: -each.code)
    assert (single.code, answer.code) == (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
    assert "LMQ_CONSUME_QUEUE_NUM_EXCEEDED" in (answer.remark or "")
    store = turns.parts.store
    assert store.max_offset("T", 0) == 1
    assert store.max_offset("%LMQ%0", 0) == 0
    turns.serve(request(BATCH, encode_batch(light[1:])), request(SINGLE, b"z"))
    (answer,) = turns.run()
    assert len(fields_of(answer)["msgId"].split(",")) == 2
    turns.serve(request(BATCH, encode_batch(light[1:2]), properties=""))
    (answer,) = turns.run()
    assert len(fields_of(answer)["msgId"]) == 32
    assert store.max_offset("%LMQ%1", 0) == 2
    turns.sending.close()


def test_a_oneway_batch_has_no_answer_and_outlives_its_producer(turns: Turns) -> None:
    turns.serve(request(BATCH, body_of(LONG), flag=ONEWAY_FLAG))
    turns.sending.peer.connected = False
    assert turns.run() == []
    assert turns.parts.store.max_offset("T", 0) == LONG


def test_too_many_bytes_that_wait_are_refused(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = body_of(LONG)
    monkeypatch.setattr(batches, "MAX_WAITING_BYTES", 2 * len(body))
    for number in range(2):
        turns.serve(request(BATCH, body), peer=FakePeer(10 + number))
    turns.serve(request(BATCH, body))
    (answer,) = turns.sending.answers()
    assert answer.code == ResponseCode.SYSTEM_BUSY
    turns.run()
    assert turns.parts.store.max_offset("T", 0) == 2 * LONG
    turns.serve(request(BATCH, body))
    turns.run()
    assert turns.parts.store.max_offset("T", 0) == 3 * LONG


def test_a_long_batch_for_a_topic_of_batches_is_one_record(turns: Turns) -> None:
    topics = turns.parts.topics
    turns.parts.topic("B", 4, queue_type="BatchCQ")
    assert topics.has_batches("B")
    turns.parts.store._queues.kind_of = topics.has_batches
    turns.serve(request(BATCH, body_of(LONG), topic="B"))
    assert turns.sending.stored() == []
    (answer,) = turns.run()
    (record,) = turns.sending.stored()
    assert (record.properties["INNER_NUM"], record.body) == (str(LONG), body_of(LONG))
    assert (fields_of(answer)["batchUniqId"], fields_of(answer)["queueOffset"]) == ("k", "0")
    assert turns.parts.store.max_offset("B", 0) == LONG


def test_a_long_batch_without_a_key_is_not_for_a_topic_of_batches(turns: Turns) -> None:
    turns.parts.topic("B", 4, queue_type="BatchCQ")
    turns.parts.store._queues.kind_of = turns.parts.topics.has_batches
    turns.serve(request(BATCH, body_of(LONG), topic="B", properties=""))
    (answer,) = turns.run()
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "has no key of its own" in (answer.remark or "")


def test_a_long_batch_is_answered_when_it_is_durable(tmp_path: Path) -> None:
    turns = Turns(tmp_path, flush_disk_type="SYNC_FLUSH")
    turns.serve(request(BATCH, body_of(LONG)))
    assert turns.run() == []
    job = turns.sending.flush()
    job.run()
    turns.parts.store.flush.finish(job)
    (answer,) = turns.run()
    assert fields_of(answer)["queueOffset"] == "0"
    assert turns.parts.store.max_offset("T", 0) == LONG
    turns.sending.close()
