# SPDX-License-Identifier: Apache-2.0
"""Whatever a client sends, answers, records, units and index are those of the reference."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.broker.conftest import STORE_HOST
from tests.broker.intake.reference import LETTERS, OWN, Reference, encoded
from tests.broker.processors.sends import Sending
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.remoting import formats
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.message.record import build_batch_entry
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

KEY = "7F00000100002A139A9E5EFB7A4F%04X"
IPV6 = bytes(15) + b"\1" + (50_000).to_bytes(4, "big")
LONGEST = "L" * 127
LONG_DEAD = "%DLQ%" + "d" * 123
TOPICS = {"T": 4, "U": 1, "%DLQ%g": 1, LONGEST: 1, LONG_DEAD: 1}
MAX_MESSAGE_BYTES = 600
MAX_PROPERTIES_BYTES = 32_767
OWN_BYTES = len(encoded(OWN))
VALUES = st.sampled_from(["a", "a b", "true", "x\x01y", "\u00e9\u4e2d\U0001f600", "", '"\\/', "%d"])
PAIRS = st.lists(
    st.tuples(
        st.sampled_from(
            ["KEYS", "TAGS", "WAIT", "own", "orderId", "\u00fc", "", "CLUSTER", "POP_CK", "own"]
        ),
        VALUES,
    ),
    max_size=5,
)
DELAYS = st.sampled_from([None, None, None, "0", "1", "3", "99", "-1"])


@st.composite
def properties(draw: st.DrawFn, *, key: bool = True) -> str:
    """A text of properties as any client may write it."""
    pairs = draw(PAIRS)
    if key:
        place = draw(st.integers(0, len(pairs)))
        pairs.insert(place, ("UNIQ_KEY", KEY % draw(st.integers(0, 0xFFFF))))
    delay = draw(DELAYS)
    if delay is not None:
        pairs.append(("DELAY", delay))
    text = "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    return text + draw(st.sampled_from(["", "\x02", "\x02\x02"]))


@st.composite
def long_properties(draw: st.DrawFn) -> str:
    """A text that with the broker's own properties is about as long as it may be."""
    text = f"UNIQ_KEY\x01{KEY % 7}\x02pad\x01"
    over = draw(st.integers(-1, 1))
    return text + "p" * (MAX_PROPERTIES_BYTES - OWN_BYTES - len(text) - 1 + over)


AROUND_A_LIMIT = st.integers(MAX_MESSAGE_BYTES - 1, MAX_MESSAGE_BYTES + 1)


@st.composite
def others(draw: st.DrawFn) -> bytes:
    """A request that is no send, and whose answer tells what was served before it."""
    queue = {"topic": "T", "queueId": "0", "consumerGroup": "g"}
    code = draw(st.sampled_from([11, 14, 15, 30, 30, 34, 9_999]))
    if code == 11:
        queue |= {
            "queueOffset": draw(st.sampled_from("0012")), "maxMsgNums": "1", "sysFlag": "4",
            "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*",
            "subVersion": "0",
        }  # fmt: skip
    elif code == 15:
        queue["commitOffset"] = draw(st.sampled_from("0123"))
    body = b'{"clientID":"c"}' if code == 34 else b""
    return draw(st.sampled_from([java_json, other_json, binary]))(code, queue, 0, body)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A send of any client: names or letters, in any order, JSON or binary, single or batch."""
    is_batch = draw(st.sampled_from([False, False, False, True]))
    fields: dict[str, str] = {
        "producerGroup": "p", "topic": draw(
            st.sampled_from(["T"] * 6 + ["U", "U", "%DLQ%g", LONGEST, LONGEST + "L", LONG_DEAD])
        ),
        "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
        "queueId": draw(st.sampled_from(["0", "0", "0", "+0", "00"])),
        "sysFlag": draw(st.sampled_from(["0", "0", "1", "48"])),
        "bornTimestamp": draw(st.sampled_from(["1700000000000", "0", "-1", "9" * 18])),
        "flag": draw(st.sampled_from(["0", "7", "-1"])),
        "properties": draw(st.one_of(*[properties(key=True)] * 9, long_properties())),
    }  # fmt: skip
    if not draw(st.booleans()):
        fields |= {"reconsumeTimes": draw(st.sampled_from(["0", "", "3"])), "unitMode": "false"}
        fields |= {"maxReconsumeTimes": "0", "batch": draw(st.sampled_from(["false", "False"]))}
    wrong = draw(st.sampled_from([None] * 12 + ["queueId", "flag", "bornTimestamp", "topic"]))
    if wrong is not None:
        fields[wrong] = draw(st.sampled_from(["x", "", "1.5", "99999999999999999999"]))
        if wrong == "topic" or draw(st.booleans()):
            del fields[wrong]
    body = draw(st.binary(min_size=0, max_size=20))
    if draw(st.integers(0, 7)) == 7:
        body = b"b" * draw(AROUND_A_LIMIT)
    code = 10
    if is_batch:
        code = draw(st.sampled_from([320, 310]))
        fields["batch"] = "true"
        body = b"".join(
            build_batch_entry(
                {"flag": 3, "body": draw(st.binary(max_size=9)), "properties": text.encode()}
            )
            for text in draw(st.lists(properties(), max_size=3))
        )
        if body and draw(st.integers(0, 3)) == 3:
            room = draw(AROUND_A_LIMIT) - len(body) - 22
            body += build_batch_entry({"flag": 0, "body": b"b" * max(room, 0), "properties": b""})
    if draw(st.booleans()):
        letters = {name: letter for letter, name in LETTERS.items()}
        fields = {letters[name]: text for name, text in fields.items()}
        code = code if code == 320 else 310
    if draw(st.booleans()):
        fields["unknown"] = "field"
    fields = dict(draw(st.permutations(list(fields.items()))))
    flag = draw(st.sampled_from([0, 0, 0, 2]))
    return draw(st.sampled_from([java_json, other_json, binary]))(code, fields, flag, body)


def java_json(code: int, ext: dict[str, str], flag: int, body: bytes) -> bytes:
    header = {
        "code": code, "extFields": ext, "flag": flag, "language": "JAVA", "opaque": code * 7,
        "serializeTypeCurrentRPC": "JSON", "version": 407,
    }  # fmt: skip
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    return frame(0, text.encode(), body)


def other_json(code: int, ext: dict[str, str], flag: int, body: bytes) -> bytes:
    """As Go, C++ or Node write it: another order, blanks, escapes, more members."""
    header = {
        "language": "GO", "version": 317, "opaque": -5, "code": code, "flag": flag, "remark": "",
        "extFields": ext,
    }  # fmt: skip
    return frame(0, json.dumps(header).encode(), body)


def binary(code: int, ext: dict[str, str], flag: int, body: bytes) -> bytes:
    fields = [
        {"name_length": len(n), "name": n, "value_length": len(v), "value": v}
        for n, v in ((name.encode(), value.encode()) for name, value in ext.items())
    ]
    encoded = b"".join(formats.BINARY_FIELD.build(each) for each in fields)
    head = {"code": code, "language": 0, "version": 407, "opaque": 9, "flag": flag}
    header = formats.BINARY_HEAD.build({**head, "remark_length": 0})
    header += formats.BINARY_FIELDS_LENGTH.build({"fields_length": len(encoded)}) + encoded
    return frame(1, header, body)


def frame(kind: int, header: bytes, body: bytes) -> bytes:
    data: bytes = formats.FRAME.build({"serialize_type": kind, "header": header, "body": body})
    return data


def facts(answer: Any) -> dict[str, Any]:
    return {
        "code": answer.code, "flag": answer.flag, "opaque": answer.opaque,
        "extFields": answer.ext_fields, "body": answer.body,
    }  # fmt: skip


def expected_of(answer: dict[str, Any], got: dict[str, Any]) -> dict[str, Any]:
    """An answer in the same terms; of a pull only what it brought."""
    told = {name: answer[name] for name in ("code", "flag", "opaque", "extFields", "body")}
    if answer["pulled"]:
        told["extFields"] = got["extFields"]
    return told


@hypothesis.given(
    reads=st.lists(
        st.lists(st.one_of(frames(), frames(), frames(), others()), min_size=1, max_size=8),
        min_size=1,
        max_size=4,
    ),
    is_ipv6=st.booleans(),
    file_bytes=st.sampled_from([1 << 20, 65_536, 2_048]),
)
def test_every_request_is_served_as_the_reference_does(
    reads: list[list[bytes]], is_ipv6: bool, file_bytes: int
) -> None:
    judge(reads, is_ipv6, file_bytes)


def single(body_bytes: int, topic: str = "T", pad: int = 0) -> bytes:
    """A send with a body of such a size, and properties that are so much longer than needed."""
    text = f"UNIQ_KEY\x01{KEY % 7}" + ("\x02pad\x01" + "p" * pad if pad else "")
    values = ["p", topic, "TBW102", "4", "0", "0", "1700000000000", "0", text]
    fields = dict(zip("abcdefghi", values, strict=True))
    return java_json(310, fields, 0, b"b" * body_bytes)


def batch(body_bytes: int) -> bytes:
    """A batch of one message, such a size as a whole."""
    entry = build_batch_entry({"flag": 0, "body": b"b" * (body_bytes - 22), "properties": b""})
    values = ["p", "T", "TBW102", "4", "0", "0", "1700000000000", "0", "WAIT\x01true", "true"]
    return java_json(320, dict(zip("abcdefghim", values, strict=True)), 0, entry)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_around_each_limit(over: int) -> None:
    pad = MAX_PROPERTIES_BYTES - OWN_BYTES - len(f"UNIQ_KEY\x01{KEY % 7}\x02pad\x01\x02")
    near = MAX_MESSAGE_BYTES + over
    around = [single(near), batch(near), single(4, pad=pad + over)]
    around += [single(4, LONGEST), single(4, LONGEST + "L"), single(4, LONG_DEAD)]
    judge([[single(1), *around, single(2)]], False, 1 << 20)


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("in_one_read", [True, False])
def test_around_the_end_of_a_file(over: int, in_one_read: bool) -> None:
    """The third record would leave 9, 8 or 7 bytes of the first file; a blank needs 8."""
    empty = Reference(TOPICS, bytes(8), STORE_HOST, 0)
    empty.serve(single(450))
    size = len(empty.log)
    last = 2_048 - 8 + over - 3 * size + 450
    assert 0 < last <= MAX_MESSAGE_BYTES
    frames = [single(450), single(450), single(last), single(3)]
    judge([frames] if in_one_read else [[each] for each in frames], False, 2_048)


def judge(reads: list[list[bytes]], is_ipv6: bool, file_bytes: int) -> None:
    """Serves reads both ways: answers and files must be equal."""
    with tempfile.TemporaryDirectory() as folder:
        sending = Sending(
            Path(folder),
            max_message_size=MAX_MESSAGE_BYTES,
            mapped_file_size_commit_log=file_bytes,
        )
        parts = sending.parts
        sending.dispatcher.use(Registry(*all_processors(parts)))
        for name, queues in TOPICS.items():
            parts.topic(name, queues)
        parts.groups.update(SubscriptionGroupConfig(group_name="g"))
        if is_ipv6:
            sending.peer.remote_host = IPV6
        reference = Reference(
            TOPICS, sending.peer.remote_host, STORE_HOST, parts.now_ms, file_bytes,
            MAX_MESSAGE_BYTES,
        )  # fmt: skip
        commit = {"topic": "T", "queueId": "0", "consumerGroup": "g", "commitOffset": "0"}
        for read in [[java_json(15, commit, 0, b"")], *reads]:
            wanted = [answer for each in read if (answer := reference.serve(each)) is not None]
            answers = [facts(each) for each in sending.receive(b"".join(read))]
            assert len(answers) == len(wanted)
            assert answers == [expected_of(*pair) for pair in zip(wanted, answers, strict=True)]
        assert not sending.failures
        check_files(Path(folder, "store"), sending, reference)
        sending.close()


def check_files(folder: Path, sending: Sending, reference: Reference) -> None:
    """Log, units and index are those of the reference, byte for byte."""
    store, size = sending.parts.store, reference.file_bytes
    log = b"".join(path.read_bytes() for path in sorted((folder / "commitlog").glob("0*")))
    assert log[: len(reference.log)] == reference.log
    assert not any(log[len(reference.log) :])
    assert store.max_physical_offset in {len(reference.log), -(-len(reference.log) // size) * size}
    for (topic, queue_id), units in reference.units.items():
        if units:
            path = folder / "consumequeue" / topic / str(queue_id) / ("0" * 20)
            assert path.read_bytes()[: 20 * len(units)] == b"".join(units)
        assert store.max_offset(topic, queue_id) == len(units)
    store.tick(sending.parts.now_ms)
    if 0 < len(reference.keys) < 390:
        (index,) = (folder / "index").iterdir()
        assert index.read_bytes() == reference.index(100, 400)
