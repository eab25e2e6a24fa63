# SPDX-License-Identifier: Apache-2.0
"""The generated frames are those of the Java client 4.9.7."""

from benchmarks import frames
from txrocketmq.remoting.frame.signer import Signer

RECORDED_SEND_HEADER = (
    rb'{"code":310,"extFields":{"a":"bench-producer","b":"capsync","c":"TBW102","d":"8","e":"6",'
    rb'"f":"0","g":"1795247995408","h":"0","i":"UNIQ_KEY\u0001'
    rb"FD000000000000000000000000000002382E30946E0968B692100000\u0002WAIT\u0001true"
    rb'","j":"0","k":"false","m":"false","n":"broker-a"},"flag":0,"language":"JAVA","opaque":6,'
    rb'"serializeTypeCurrentRPC":"JSON","version":407}'
)
RECORDED_COUNTER = b"68B692100000"


def test_send_is_the_recorded_frame_but_for_the_counter_of_its_key() -> None:
    made = frames.send_message_v2(
        "capsync", 6, b"x" * 1024, opaque=6, now_ms=1795247995408, process=0x382E
    )
    header = RECORDED_SEND_HEADER.replace(RECORDED_COUNTER, b"000000000006")
    assert made == b"\x00\x00\x05\x67\x00\x00\x01\x63" + header + b"x" * 1024


def test_an_account_signs_a_send() -> None:
    account = "alice", "secret"
    made = frames.send_message_v2("T", 0, b"x", opaque=1, now_ms=1, process=0, account=account)
    [(header, body)], _ = frames.split(made)
    fields = header["extFields"]
    given = fields.pop("Signature")
    assert fields["AccessKey"] == "alice"
    assert Signer("secret").accepts(fields, body, given)


def test_batch_body_holds_size_body_and_properties_of_each_message() -> None:
    made = frames.send_batch_message(
        "capb", 1, [b"x" * 128] * 2, opaque=6, now_ms=1795248071712, process=0x3AEB
    )
    [(header, body)], rest = frames.split(made)
    assert rest == b""
    assert header["code"] == 320
    assert header["extFields"]["m"] == "true"
    assert len(made) == 733  # as recorded
    assert body[:20] == b"\x00\x00\x00\xe1" + bytes(12) + b"\x00\x00\x00\x80"
    assert body[148:150] == b"\x00\x4b"
    assert body[0xE1 : 0xE1 + 20] == body[:20]


def test_pull_asks_with_the_version_of_the_heartbeat() -> None:
    pull = frames.pull_message("t", "g", 3, 64, opaque=3, version=5)
    beat = frames.consumer_heartbeat("me", "g", "t", opaque=8, version=5)
    [(pull_header, _), (beat_header, beat_body)], _ = frames.split(pull + beat)
    assert pull_header["extFields"]["queueOffset"] == "64"
    assert pull_header["extFields"]["commitOffset"] == "64"
    assert pull_header["extFields"]["sysFlag"] == "3"
    assert pull_header["extFields"]["subVersion"] == "5"
    assert beat_header["code"] == 34
    assert beat_body.count(b'"subVersion":5') == 2


def test_split_keeps_what_is_not_whole() -> None:
    one = frames.pull_message("t", "g", 0, 0, opaque=1, version=0)
    for cut in range(len(one)):
        whole, rest = frames.split(one + one[:cut])
        assert len(whole) == 1
        assert rest == one[:cut]
