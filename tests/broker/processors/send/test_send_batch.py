# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, no_transforms
from txrocketmq.broker.processors.send.send_batch import entries_of
from txrocketmq.broker.store.message_store import PutMessage
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import MessageDecodeError, decode_batch
from txrocketmq.remoting.message.record import build_batch_entry
from txrocketmq.remoting.message.tags import tags_code


def entry(properties: bytes = b"", body: bytes = b"one", flag: int = 0) -> bytes:
    return build_batch_entry({"flag": flag, "body": body, "properties": properties})


def taken_apart(body: bytes) -> list[PutMessage]:
    batch = InnerMessage("T", 3, body, 7, bytes(8), bytes(8), sys_flag=1, way=Way.BATCH)
    made, at = entries_of(batch, no_transforms(), lambda _: None, 0, len(body))
    assert at == len(body)
    return [PutMessage(*each) for each in made]


PROPERTIES = st.lists(
    st.tuples(
        st.sampled_from(["UNIQ_KEY", "KEYS", "TAGS", "own", ""]),
        st.sampled_from(["a", "a b", "", "x\x01y", "\u00e9"]),
    ),
    max_size=5,
).map(lambda pairs: "\x02".join(f"{name}\x01{value}" for name, value in pairs).encode())


@given(
    st.lists(
        st.tuples(PROPERTIES | st.binary(max_size=8), st.binary(max_size=9), st.integers(0, 9)),
        max_size=5,
    )
)
def test_entries_are_read_as_the_decoder_reads_them(
    entries: list[tuple[bytes, bytes, int]],
) -> None:
    body = b"".join(entry(*each) for each in entries)
    made = taken_apart(body)
    assert [each.properties for each in made] == [properties for properties, _, _ in entries]
    for put, message in zip(made, decode_batch(body), strict=True):
        get = message.properties.get
        assert (put.body, put.flag, put.sys_flag) == (message.body, message.flag, 1)
        assert (put.uniq_key, put.keys, put.tags) == (get("UNIQ_KEY"), get("KEYS"), get("TAGS"))
        assert put.tags_code == tags_code(get("TAGS"))
        assert (put.topic, put.queue_id, put.born_timestamp_ms) == ("T", 3, 7)


@given(st.binary(max_size=60) | st.integers(0, 60).map(lambda cut: (entry(b"a\x01b") * 2)[:cut]))
def test_what_is_broken_is_refused(body: bytes) -> None:
    try:
        decode_batch(body)
    except MessageDecodeError:
        with pytest.raises(ResponseError, match="the batch is broken"):
            taken_apart(body)
    else:
        taken_apart(body)


def test_what_a_transform_changes_is_written_anew_and_the_rest_is_not() -> None:
    class Twice:
        acts_on = ActsOn(properties=frozenset({"twice"}))

        def apply(self, message: InnerMessage, now_ms: int) -> None:
            if message.properties["twice"] == "yes":
                message.properties["twice"] = "yesyes"

    transforms = no_transforms([Twice()])
    texts = [b"own\x01a", b"twice\x01yes", b"twice\x01no"]
    batch = InnerMessage("T", 3, b"".join(map(entry, texts)), 7, bytes(8), bytes(8), way=Way.BATCH)
    made, _ = entries_of(batch, transforms, lambda message: transforms.apply(message, 0), 0, 9)
    assert [each[3] for each in made] == [b"own\x01a", b"twice\x01yesyes\x02", b"twice\x01no"]
