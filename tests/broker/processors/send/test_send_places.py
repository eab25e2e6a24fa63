# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.broker.processors.sends import Sending
from tests.counted import lines_of
from txrocketmq.broker.processors.send import send_places as module
from txrocketmq.broker.processors.send.send_places import Place, Shapes
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.message.properties import encode_properties

LETTERS = {"a": "p", "b": "T", "e": "1", "g": "17", "i": "K\x01v", "z": "unknown"}
NAMES = {"topic": "T", "properties": "K\x01v", "queueId": "1", "bornTimestamp": "17"}
KEY = "7F00000100002A139A9E5EFB7A4F0000"
PLACE = Place("T", 1, b"1", 0, 0, 0)


@pytest.mark.parametrize(("ext", "rest"), [(LETTERS, "p T 1 unknown"), (NAMES, "T 1")])
def test_a_shape_knows_what_varies_and_gives_all_the_rest(ext: dict[str, str], rest: str) -> None:
    shape = Shapes().of(ext)
    assert shape is not None
    assert shape.size == len(ext)
    assert (ext[shape.born], ext[shape.properties]) == ("17", "K\x01v")
    assert shape.rest(ext) == tuple(rest.split())


def test_a_letter_counts_more_than_the_long_name() -> None:
    ext = {"g": "1", "bornTimestamp": "2", "properties": "long", "i": "short"}
    shape = Shapes().of(ext)
    assert shape is not None
    assert (ext[shape.born], ext[shape.properties]) == ("1", "short")
    assert shape.rest(ext) == ("2", "long")


@pytest.mark.parametrize(
    "ext", [None, {}, {"g": "1"}, {"i": "a"}, {"g": "1", "i": "a"}, {"b": "T", "e": "1"}]
)
def test_headers_that_lack_what_varies_or_all_else_have_no_shape(
    ext: dict[str, str] | None,
) -> None:
    assert Shapes().of(ext) is None


def test_shapes_are_told_apart_by_their_names() -> None:
    shapes = Shapes()
    assert shapes.of(LETTERS) is shapes.of({**LETTERS, "b": "U"})
    assert shapes.of(LETTERS) is not shapes.of({**LETTERS, "y": "more"})


def test_places_are_forgotten_when_they_may_be_wrong() -> None:
    shapes = Shapes()
    shape = shapes.of(LETTERS)
    shapes.of({})
    assert shape is not None
    shape.keep("p\0T\x001\0unknown", PLACE)
    assert shape.places
    shapes.forget_places()
    assert shape.places == {}


def test_values_that_others_could_join_to_are_not_kept() -> None:
    shape = Shapes().of(LETTERS)
    assert shape is not None
    odd = {**LETTERS, "a": "p\0T", "b": "1"}
    for ext in (odd, {**odd, "a": "p", "b": "T\x001"}):
        shape.keep("\0".join(shape.rest(ext)), PLACE)
    assert shape.places == {}


def test_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PLACES", 2)
    monkeypatch.setattr(module, "MAX_SHAPES", 2)
    shapes = Shapes()
    shape = shapes.of(LETTERS)
    assert shape is not None
    for each in "abc":
        shape.keep(f"{each}\0\0\0", PLACE)
    assert list(shape.places) == ["c\0\0\0"]
    for each in "xyz":
        shapes.of({**LETTERS, each: ""})
    assert len(shapes._shapes) <= 2


# --------------------------------------------------------------- as sends are served by it


@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Sending]:
    made = Sending(tmp_path)
    made.parts.topic("T")
    yield made
    made.close()


def fields_of(**properties: str) -> dict[str, str]:
    """The header of a send as a Java client writes it."""
    text = encode_properties({"UNIQ_KEY": KEY, "TAGS": "a", **properties})
    return {
        "a": "p", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "1", "g": "1700000000000",
        "h": "3", "i": text,
    }  # fmt: skip


def test_a_header_that_lacks_a_field_is_like_no_other(sending: Sending) -> None:
    fields = fields_of()
    odd = {name: value for name, value in fields.items() if name != "g"} | {"y": "unknown"}
    commands = [
        RemotingCommand(RequestCode.SEND_MESSAGE_V2, each, b"body", opaque=at)
        for at, each in enumerate((fields, odd, fields))
    ]
    answers = sending.serve(commands)
    assert [(each.opaque, each.code) for each in answers] == [(0, 0), (1, 1), (2, 0)]
    assert "bornTimestamp" in (answers[1].remark or "")
    assert len(sending.stored()) == 2


def test_the_code_counts_more_than_the_header(sending: Sending) -> None:
    """What only a code tells apart is not taken for what was sent with the same header before."""
    fields = fields_of()
    codes = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
    body = encode_batch([Message("T", b"1"), Message("T", b"2")])
    for code in (*codes, RequestCode.END_TRANSACTION):
        sending.serve([RemotingCommand(code, fields, body)])
    assert [each.body for each in sending.stored()] == [body, b"1", b"2"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in ("DELAY", "TRAN_MSG", "POP_CK", "CLUSTER")
        for value in ("1", "true")
        if (name, value) != ("DELAY", "true")
    ],
)
def test_what_is_touched_is_the_same_at_a_place_that_is_known(
    sending: Sending, name: str, value: str
) -> None:
    touched, plain = fields_of(**{name: value}), fields_of()
    commands = [
        RemotingCommand(RequestCode.SEND_MESSAGE_V2, each, b"body", opaque=at)
        for at, each in enumerate((touched, plain, touched, plain, touched))
    ]
    assert [each.code for each in sending.serve(commands)] == [0] * 5
    first, _, *later = sending.stored()
    for each in later[::2]:
        assert each.properties == first.properties
        assert (each.topic, each.queue_id) == (first.topic, first.queue_id)
        assert (each.flag, each.sys_flag, each.born_timestamp) == (3, 1, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("name", "value"), [("message.type", "LITE"), ("cleanup.policy", "COMPACTION")]
)
def test_a_topic_that_promises_what_is_not_served_takes_nothing(
    sending: Sending, name: str, value: str
) -> None:
    """An original broker has made it; here its messages would get into no light queue."""
    topics = sending.parts.topics
    topics._topics["T"] = replace(topics.all()["T"], attributes={name: value})
    command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields_of(), b"body")
    for _ in range(2):
        (answer,) = sending.serve([command])
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert f"takes no messages here: {name}={value}" in (answer.remark or "")
    assert sending.stored() == []


@pytest.mark.parametrize("level", ["4Pinpoint", "3x", "1.0", " 3"])
@pytest.mark.parametrize("more", [{}, {"TRAN_MSG": "true"}, {"TIMER_DELAY_SEC": "1"}])
def test_a_level_that_is_no_number_is_refused(
    sending: Sending, level: str, more: dict[str, str]
) -> None:
    delayed, plain = fields_of(DELAY=level, **more), fields_of()
    commands = [
        RemotingCommand(RequestCode.SEND_MESSAGE_V2, each, b"body", opaque=at)
        for at, each in enumerate((delayed, plain, delayed))
    ]
    answers = {each.opaque: each for each in sending.serve(commands)}
    assert [answers[at].code for at in range(3)] == [1, 0, 1]
    assert f'For input string: "{level}"' in (answers[0].remark or "")
    assert len(sending.stored()) == 1
    assert not sending.failures


def signed(at: int) -> RemotingCommand:
    """A message of a client with an account, whose signature is like no other's."""
    fields = {**fields_of(), "AccessKey": "someone"}
    seal = seal_of("someone", "and-a-secret")
    assert seal is not None
    seal(fields, b"body %d" % at)
    return RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields, b"body %d" % at, opaque=at)


def test_a_signature_is_no_part_of_a_place(sending: Sending) -> None:
    commands = [signed(at) for at in range(5)]
    assert len({each.ext_fields["Signature"] for each in commands if each.ext_fields}) == 5
    assert [each.code for each in sending.serve(commands)] == [0] * 5
    shape = sending.processor._plain.shape
    assert "someone" in shape.rest(commands[0].ext_fields or {})
    assert len(shape.places) == 1
    assert [each.body for each in sending.stored()] == [each.body for each in commands]


def test_a_signed_message_takes_no_more_lines_than_one_without_an_account(
    sending: Sending,
) -> None:
    unsigned = [
        RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields_of(), b"body", opaque=at)
        for at in range(3)
    ]
    taken = []
    for commands in (unsigned, [signed(at) for at in range(3)]):
        for each in commands[:2]:  # the first teaches the place
            sending.serve([each])
        last = Run(sending.peer, commands[2:], 0, lambda *_: ())
        taken.append(lines_of(partial(sending.processor.read_sends, last, last.commands, [], [])))
    assert taken[1] <= taken[0]
