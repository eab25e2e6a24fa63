# SPDX-License-Identifier: Apache-2.0
"""Each signature is computed, over what the decoded header says; see also test_raw_signers.py."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.test_header_holes import encoded, header_of
from tests.broker.kernel.two_brokers import with_each_kernel
from tests.examples import examples
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.kernel.header_holes import holes_of, pull_holes_of
from txrocketmq.broker.kernel.signatures import SigningAccounts
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.frame.frame import FrameDecoder, decode_header
from txrocketmq.remoting.frame.signer import SIGNATURE, Signer
from txrocketmq.remoting.message import record

ME, OTHER = ("me", "my secret"), ("me", "another secret")
SIGNER = Signer(ME[1])


def signed_frames(seed: int) -> Frames:
    frames = Frames(random.Random(seed))
    frames.accounts = [ME]
    return frames


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(300), deadline=None)
def test_what_is_signed_is_what_is_decoded(seed: int) -> None:
    """Also of damaged headers: what has holes is decoded to that, or its values are not known."""
    chance = random.Random(seed)
    frames = signed_frames(seed)
    make, cut = chance.choice(((frames.send, holes_of), (frames.pull, pull_holes_of)))
    kind, header = header_of(make())
    if chance.randrange(3):
        header = frames.mutated(header)
    holes: Any = cut(kind, header)
    if holes is None or holes.signed is None or holes.signed.values is None:
        return
    try:
        fields = dict(decode_header(kind, header).ext_fields or {})
    except FrameError:  # of something outside the fields
        return
    assert fields.pop(SIGNATURE).encode() == holes.signed.signature
    accounts = SigningAccounts()
    number = accounts.add(SIGNER.key)
    signature = SIGNER.signature(fields, b"").encode()
    same = holes.signed._replace(signature=signature)
    assert accounts.accepts(same, number, b"")
    assert not accounts.accepts(same, number, b"x")


def table_of(kernel: Kernel) -> Any:
    table = kernel.new_table([b"DELAY"], [b"DELAY"], [b"DELAY"], b"OWN\1x\2")
    assert table.add_queue("queue", b"\6orders", record.MAGIC_V1, 1) == 0
    return table


def learns(table: Any, frame: bytes, origin: int, account: int | None) -> bool:
    kind, header = header_of(frame)
    known: bool = table.learn(
        kind, header, 0, False, False, 0, 0, 0, 310, None, origin, account
    )  # fmt: skip
    return known


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(100), deadline=None)
def test_only_what_the_account_has_signed_is_taken(kernel: Kernel, seed: int) -> None:
    chance, frames, table = random.Random(seed), signed_frames(seed), table_of(kernel)
    account = table.add_account(SIGNER.key)
    if not learns(table, frames.send(b="orders", e="1"), 7, account):
        return
    for _ in range(10):
        frames.accounts = [ME] if chance.randrange(3) else [OTHER]
        data = frames.send(b="orders", e="1")
        if chance.randrange(2):
            data = frames.mutated(data)
        run = table.take(data, 7)
        assert table.take(data, 8) is None
        assert table.take(data, 0) is None
        if run is not None:
            (command,) = FrameDecoder().receive(data[: run.at])
            fields = dict(command.ext_fields or {})
            assert SIGNER.accepts(fields, command.body, fields.pop(SIGNATURE))


@with_each_kernel
def test_what_can_be_learned(kernel: Kernel) -> None:
    table, frames = table_of(kernel), signed_frames(1)
    account = table.add_account(SIGNER.key)
    signed = frames.usual(e="1")
    frames.accounts = []
    unsigned = frames.usual(e="1")
    assert not learns(table, signed, 0, None), "nobody would check it"
    assert not learns(table, signed, 0, account)
    assert not learns(table, signed, 7, None)
    assert not learns(table, signed, 7, account + 1)
    assert not learns(table, unsigned, 7, account)
    assert not learns(table, unsigned, 7, None)
    assert learns(table, unsigned, 0, None)
    assert table.take(signed, 7) is None
    assert learns(table, signed, 7, account)
    assert table.take(signed * 3, 7).commands == 3
    table.wipe()
    assert table.take(signed, 7) is None
    assert table.take(unsigned, 0) is None
    assert not learns(table, signed, 7, account)
    assert table.add_account(SIGNER.key) == 0


@with_each_kernel
@pytest.mark.parametrize("key", [b"", b"my secret", bytes(63), bytes(65)])
def test_a_secret_has_the_length_of_a_block(kernel: Kernel, key: bytes) -> None:
    for each in (table_of(kernel), kernel.new_pulls()):
        with pytest.raises(ValueError, match="secret"):
            each.add_account(key)


FIELDS = {"a": "P", "b": "orders", "e": "1", "g": "17", "i": "UNIQ_KEY\1A\2", "AccessKey": "me"}


@with_each_kernel
@pytest.mark.parametrize("kind", SerializeType)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SecurityToken", "token"), ("zz", 'ä\U0001f600 "\\/\n'), ("A", ""), ("b2", "x"),
        ("a-b", "x"), ("ä", "x"), ("Signaturf", "x"),
    ],
    ids=str,
)  # fmt: skip
def test_other_fields_are_signed_in_the_order_of_their_names(
    kernel: Kernel, kind: SerializeType, name: str, value: str
) -> None:
    """Or such a header is not learned: an order of names may be another one in Java."""
    table, usual = table_of(kernel), name.isascii() and name.isalpha()
    account = table.add_account(SIGNER.key)
    fields = {name: value, **FIELDS}

    def frame(fields: dict[str, str]) -> bytes:
        sealed = {SIGNATURE: SIGNER.signature(fields, b"body"), **fields}
        header = encoded(kind, sealed)
        lengths = (len(header) + 8).to_bytes(4, "big") + (kind << 24 | len(header)).to_bytes(
            4, "big"
        )
        return lengths + header + b"body"

    is_known = learns(table, frame(fields), 7, account)
    if kind == SerializeType.ROCKETMQ and name == "b2":
        usual = True
    assert is_known is usual
    other = frame(fields | {"g": "18", "i": "UNIQ_KEY\1B\2x\1ä\2"})
    assert (table.take(other, 7) is not None) is usual
    assert table.take(other[:-1] + b"Y", 7) is None


@pytest.mark.parametrize(
    "signature", ["", "short", "x" * 27, "x" * 29, "\\u0041" + "x" * 27, "ä" * 14, "x" * 27 + "-"]
)
def test_what_is_no_signature_has_no_holes(signature: str) -> None:
    for kind in SerializeType:
        header = encoded(kind, {**FIELDS, SIGNATURE: signature})
        assert holes_of(kind, header.replace(b"\\\\u", b"\\u")) is None
        assert holes_of(kind, encoded(kind, {**FIELDS, SIGNATURE: "x" * 27 + "="})) is not None


@with_each_kernel
def test_pulls_are_signed_too(kernel: Kernel) -> None:
    pulls, frames = kernel.new_pulls(), signed_frames(1)
    account = pulls.add_account(SIGNER.key)
    fields = {"queueOffset": "1", "commitOffset": "2", "maxMsgBytes": "9", "queueId": "1"}
    changes = {"consumerGroup": "g", "topic": "T", "maxMsgNums": "1", "sysFlag": "0"} | fields
    frames._is_shuffled = False
    changes["subscription"] = "*"
    first = frames.pull(**changes)
    assert pulls.learn(*header_of(first), 0, None) is None
    assert pulls.learn(*header_of(first), 7, account) == 0
    assert pulls.take(first, 0, 7)[0] == 0
    assert pulls.take(first, 0, 8) is None
    assert pulls.take(first, 0, 0) is None
    for frame in (frames.pull(**changes, queueOffset2="1"), first.replace(b'"2"', b'"3"')):
        assert frame == first or pulls.take(frame, 0, 7) is None
    pulls.wipe()
    assert pulls.take(first, 0, 7) is None
    assert pulls.learn(*header_of(first), 7, account) is None
