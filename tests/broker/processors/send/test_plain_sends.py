# SPDX-License-Identifier: Apache-2.0
"""Plain sends without a broker: from the bytes of a read to messages, records and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.broker.conftest import STORE_HOST
from tests.broker.processors.sends import Sending
from tests.examples import examples
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.plain_properties import PlainProperties
from txrocketmq.broker.intake.transforms.own_properties import own_properties
from txrocketmq.broker.processors.send.plain_sends import ALL, NEW, PlainSends
from txrocketmq.broker.processors.send.send_answers import SendAnswers
from txrocketmq.broker.processors.send.send_places import Place
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.log.encode import Batch, encode
from txrocketmq.broker.store.queues.consume_queues import encode_topic
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import MAX_FRAME_BYTES, cut, encode_frame
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.properties import decode_properties, encode_properties

KEY = "7F00000100002A139A9E5EFB7A4F%04X"
PEER_HOST = bytes([127, 0, 0, 1]) + (50_000).to_bytes(4, "big")
OWN = own_properties(BrokerConfig())
TOUCHED = frozenset({"DELAY"})
FIELDS = {"a": "p", "b": "T", "c": "TBW102", "d": "4", "f": "0", "h": "0", "j": "0", "k": "false"}
PLACES = {str(queue_id): Place("T", queue_id, b"%d" % queue_id, 0, 0, 0) for queue_id in (0, 1)}


def plain_sends() -> PlainSends:
    plain = PlainSends(PlainProperties(TOUCHED).of, STORE_HOST)
    plain.add_to_all(encode_properties(OWN).encode())
    return plain


def sent(number: int = 0, queue: str = "0", text: str | None = None, **other: Any) -> Any:
    """A send as clients write it, with long fields shortened to letters."""
    values = {"body": b"body", "code": RequestCode.SEND_MESSAGE_V2, "born": "17", **other}
    if text is None:
        text = f"UNIQ_KEY\x01{KEY % number}\x02"
    ext = {**FIELDS, "e": queue, "g": values["born"], "i": text}
    return RemotingCommand(values["code"], ext, values["body"], opaque=number)


def knowing(*queues: str) -> PlainSends:
    """What has learned the places of these queues."""
    plain = plain_sends()
    for queue in queues:
        assert plain.take([sent(queue=queue)], PEER_HOST, [], [])[1] is NEW
        ext = sent(queue=queue).ext_fields
        plain.shape.keep("\0".join(plain.shape.rest(ext)), PLACES[queue])
    return plain


def test_it_takes_what_it_knows_up_to_a_place_that_is_new() -> None:
    plain, messages, outcomes = knowing("0"), list[Any](), list[Any]()
    commands = [sent(1), sent(2), sent(3, "1"), sent(4)]
    assert plain.take(commands, PEER_HOST, messages, outcomes) == (2, NEW)
    assert plain.take(commands[2:], PEER_HOST, messages, outcomes, PLACES["1"]) == (2, ALL)
    assert [each[1] for each in messages] == [0, 0, 1, 0]
    assert [each[:5] for each in outcomes] == [
        (command, at, 1, b"%d" % messages[at][1], KEY % (at + 1))
        for at, command in enumerate(commands)
    ]


@pytest.mark.parametrize(
    "other",
    [
        sent(2, text=f"UNIQ_KEY\x01{KEY % 2}\x02DELAY\x013\x02"),
        sent(2, text="TAGS\x01a\x02"),
        sent(2, text=""),
        sent(2, body=b""),
        sent(2, born="soon"),
        sent(2, born="1" * 19),
        sent(2, born="-1"),
    ],
)
def test_what_is_not_plain_is_left_with_its_place(other: RemotingCommand) -> None:
    plain, messages, outcomes = knowing("0"), list[Any](), list[Any]()
    taken = plain.take([sent(1), other, sent(3)], PEER_HOST, messages, outcomes)
    assert taken == (1, PLACES["0"])
    assert (len(messages), len(outcomes)) == (1, 1)


def test_other_requests_and_headers_without_a_shape_are_left() -> None:
    plain = knowing("0")
    pull = RemotingCommand(RequestCode.PULL_MESSAGE, {"topic": "T"})
    assert plain.take([sent(), pull, sent()], PEER_HOST, [], []) == (1, ALL)
    assert plain.take([], PEER_HOST, [], []) == (0, ALL)
    bare = RemotingCommand(RequestCode.SEND_MESSAGE_V2, None, b"body")
    assert plain.take([bare], PEER_HOST, [], []) == (0, None)
    assert plain.take([sent()], PEER_HOST, [], []) == (1, ALL)


def test_what_varies_is_read_as_it_is() -> None:
    plain = knowing("0")
    assert plain.varying(sent(text="a\x01b")) == (17, "a\x01b")
    for born in ("soon", "", "1" * 19, "-1"):
        assert plain.varying(sent(born=born)) is None


PAIRS = st.lists(
    st.tuples(
        st.sampled_from(["KEYS", "TAGS", "WAIT", "own", "\u00fc"]),
        st.sampled_from(["a", "a b", "true", "FALSE", "\u4e2d\U0001f600", "%d"]),
    ),
    max_size=4,
    unique_by=lambda pair: pair[0],
)
SENDS = st.lists(
    st.tuples(
        st.sampled_from("01"), PAIRS, st.booleans(), st.integers(0, 10**17), st.binary(min_size=1)
    ),
    min_size=1,
    max_size=20,
)


def commands_of(sends: list[tuple[str, Any, bool, int, bytes]]) -> list[RemotingCommand]:
    commands = []
    for number, (queue, pairs, is_closed, born, body) in enumerate(sends):
        text = encode_properties({names.UNIQ_KEY: KEY % number, **dict(pairs)})
        text = text if is_closed else text.rstrip("\x02")
        commands.append(sent(number, queue, text, born=str(born), body=body))
    return commands


@hypothesis.given(SENDS)
def test_messages_are_those_that_are_made_of_decoded_sends(sends: Any) -> None:
    plain, messages, outcomes = knowing("0", "1"), list[Any](), list[Any]()
    commands = commands_of(sends)
    assert plain.take(commands, PEER_HOST, messages, outcomes) == (len(commands), ALL)
    made = []
    for command in commands:
        ext: Any = command.ext_fields
        message = InnerMessage(
            "T", int(ext["e"]), command.body, int(ext["g"]), PEER_HOST, STORE_HOST,
            {**decode_properties(ext["i"]), **OWN},
        )  # fmt: skip
        made.append(message.to_put())
        assert outcomes[len(made) - 1][5] == message.waits
    assert [PutMessage(*each) for each in messages] == made


class QueueEnd:
    """The end of a queue, and nothing else of a queue."""

    def __init__(self) -> None:
        self.magic, self.record_topic = encode_topic("T")
        self.next_offset = 0
        self.pending: list[int] = []


def unexpected(batch: Any, message: PutMessage) -> Any:
    raise AssertionError(message)


@hypothesis.settings(max_examples=examples(10))
@hypothesis.given(SENDS)
def test_the_pure_units_together_do_what_the_broker_does(
    tmp_path_factory: pytest.TempPathFactory, sends: Any
) -> None:
    """From the bytes of a read to the bytes of the log and of the answers, in four calls."""
    folder: Path = tmp_path_factory.mktemp("store")
    sending = Sending(folder)
    try:
        sending.parts.topic("T")
        read = b"".join(b"".join(map(bytes, encode_frame(each))) for each in commands_of(sends))
        sending.dispatcher.serve(sending.peer, sending.connection.receive(read))
        answered = b"".join(map(bytes, sending.peer.written))
        store = sending.parts.store
        logged = bytes(store.read_raw(0, store.max_physical_offset) or b"")
        file_bytes = store.config.mapped_file_size_commit_log
    finally:
        sending.close()
    commands, _, _ = cut(read, 0, len(read), range(len(sends)), MAX_FRAME_BYTES)
    messages, outcomes = list[Any](), list[Any]()
    plain = knowing("0", "1")
    assert plain.take(commands, PEER_HOST, messages, outcomes) == (len(sends), ALL)
    batch: Batch[QueueEnd] = Batch(sending.parts.now_ms)
    ends = {"T": {0: QueueEnd(), 1: QueueEnd()}}
    encode(batch, messages, ends, (0, file_bytes, file_bytes), 1 << 20, unexpected)
    answers = SendAnswers(STORE_HOST)
    answers.prepare({name: OWN[name] for name in (names.MSG_REGION, names.TRACE_ON)})
    stored: Any = [
        (place[0], outcome[3], place[2], outcome[4], outcome[0].opaque, (), None)
        for place, outcome in zip(batch.places, outcomes, strict=True)
    ]
    assert [data for data, _ in batch.pieces] == [logged]
    assert answers.stored.frames(stored) == answered
