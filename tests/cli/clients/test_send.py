# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq send` with a client among fakes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.cli.given import given
from tests.client.fakes import BROKER_A, Scene, a_route, result_of, started
from txrocketmq.cli.clients import send as command
from txrocketmq.cli.clients.send import BATCH_BYTES, BATCH_MESSAGES, Sending, batches, main, send
from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import Message, decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send as calls
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader
from txrocketmq.remoting.protocol.transaction import END_TRANSACTION


@pytest.fixture
def scene() -> Scene:
    """A topic with one queue at a broker that stores whatever comes."""
    scene = Scene()
    scene.routes["T"] = a_route({"broker-a": 1})
    stored = Reply(SendMessageResponseHeader(msg_id="OFFSETID", queue_id=0, queue_offset=7))
    scene.connections.on(BROKER_A, calls.SEND_MESSAGE_V2, stored)
    scene.connections.on(BROKER_A, calls.SEND_BATCH_MESSAGE, stored)
    return scene


def sent(scene: Scene) -> list[tuple[Any, bytes]]:
    kinds = (calls.SEND_MESSAGE_V2, calls.SEND_BATCH_MESSAGE)
    return [(header, body) for _, call, header, body, _ in scene.connections.asked if call in kinds]


def given_options(words: list[str]) -> Sending:
    return given(command.command, Sending, words)


def run(scene: Scene, *arguments: str) -> int:
    return result_of(send(scene.client, given_options(["T", *arguments])))


def test_bodies_leave_in_order_and_each_is_told(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(scene, "one", "zwölf", "--count", "2") == 0
    assert [body.decode() for _, body in sent(scene)] == ["one", "zwölf"] * 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("SEND_OK broker-a/0@7 ")


def test_tag_keys_and_properties_are_set(scene: Scene) -> None:
    run(scene, "x", "--tag", "A", "--key", "k1", "--key", "k2", "--property", "a=1=2")
    properties = decode_properties(sent(scene)[0][0].properties)
    assert (properties["TAGS"], properties["KEYS"], properties["a"]) == ("A", "k1 k2", "1=2")


def test_json(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    run(scene, "x", "--json")
    assert json.loads(capsys.readouterr().out)["offsetMsgId"] == "OFFSETID"


def test_a_batch_is_one_request(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    run(scene, "one", "two", "--batch")
    ((header, body),) = sent(scene)
    assert header.batch
    assert [message.body for message in decode_batch(body)] == [b"one", b"two"]
    assert capsys.readouterr().out == "SEND_OK broker-a/0@7 2 messages\n"


def test_lines_of_the_input_stand_where_the_dash_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def portions(reactor: Any, descriptor: int) -> Any:
        yield [b"l1", b"l2"]
        yield [b"l3"]

    monkeypatch.setattr(command, "portions", portions)
    monkeypatch.setattr("sys.stdin", open("/dev/null", encoding="utf-8"))  # noqa: PTH123, SIM115
    run(scene, "first", "-", "last")
    assert [body for _, body in sent(scene)] == [b"first", b"l1", b"l2", b"l3", b"last"]


def test_lines_of_a_file_come_last(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def portions(reactor: Any, descriptor: int) -> Any:
        yield os.read(descriptor, 99).splitlines()

    monkeypatch.setattr(command, "portions", portions)
    path = tmp_path / "lines"
    path.write_text("l1\nl2\n")
    run(scene, "first", "--file", str(path))
    assert [body for _, body in sent(scene)] == [b"first", b"l1", b"l2"]


@pytest.fixture
def lines(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Sends lines of a file with further options; returns properties and body of each message."""

    async def portions(_: Any, descriptor: int) -> Any:
        for line in os.read(descriptor, 9_999).splitlines():
            yield [line]

    monkeypatch.setattr(command, "portions", portions)
    path = tmp_path / "lines"

    def sent_lines(text: bytes, *words: str) -> list[tuple[dict[str, str], bytes]]:
        path.write_bytes(text)
        run(scene, "--file", str(path), *words)
        return [(decode_properties(header.properties), body) for header, body in sent(scene)]

    return sent_lines


def test_each_line_has_its_own_key_tag_and_properties(lines: Any) -> None:
    text = b"k1 k2|t|a=1,b=2|one\n||x=y|two|2\n"
    form = ["-f", "%k|%g|%h|%s\\n", "--tag", "all", "--key", "k0", "--property", "b=0"]
    (first, one), (second, two) = lines(text, *form)
    assert (one, two) == (b"one", b"two|2")
    assert [first[name] for name in ("KEYS", "TAGS", "a", "b")] == ["k0 k1 k2", "t", "1", "2"]
    assert [second[name] for name in ("KEYS", "TAGS", "b", "x")] == ["k0", "all", "0", "y"]


def test_lines_are_messages_as_tail_prints_them(lines: Any) -> None:
    printed = json.dumps(
        {
            "topic": "Other",
            "body": "one",
            "tags": "t",
            "keys": ["a"],
            "properties": {"x": "1", "WAIT": "false"},
        }
    ).encode()
    ((properties, body),) = lines(printed, "--json-lines")
    assert (body, properties["TAGS"], properties["KEYS"]) == (b"one", "t", "a")
    assert (properties["x"], properties["WAIT"]) == ("1", "true")


def test_lines_that_are_messages_are_told_of_once_when_they_are_sent_as_bodies(
    lines: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = b'{"body":"one"}\n{"body":"two"}'
    assert [body for _, body in lines(printed, "--json")] == printed.split()
    (told,) = capsys.readouterr().err.splitlines()
    assert "each line is sent as a body" in told
    assert "--json-lines" in told
    for text, words in [(b'{"what":"one"}', []), (printed, ["--json-lines"]), (b"x", ["--json"])]:
        lines(text, *words)
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        (b"a:b\nc", ["-f", "%k:%s"], "line 2 of the input .* does not have the form '%k:%s'"),
        (b'{"body":"a"}\n\n{}', ["--json-lines"], 'line 2 .* needs "body" or "bodyBase64"'),
        (b"k:", ["-f", "%k:%s"], "line 1 .* the message is empty"),
        (b'{"body":"a","properties":{"x":""}}', ["--json-lines"], "line 1 .* cannot be sent: "),
    ],
)
def test_a_line_that_is_wrong_is_named(
    lines: Any, scene: Scene, text: bytes, words: list[str], why: str
) -> None:
    with pytest.raises(MessageIllegal, match=why):
        lines(text.replace(b"\n\n", b"\n"), *words)
    assert len(sent(scene)) == text.replace(b"\n\n", b"\n").count(b"\n"), "those before it are sent"


def test_a_file_is_one_body(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"two\nlines\n\x00")
    run(scene, "first", "--body-file", str(path), "--count", "2")
    assert [body for _, body in sent(scene)] == [b"first", b"two\nlines\n\x00"] * 2


def test_a_file_that_is_too_large_is_not_read_whole(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(MessageIllegal, match="is larger than 4194304 bytes: a message cannot be"):
        run(scene, "--body-file", str(path))


def test_the_pace_is_kept_whatever_a_send_takes(scene: Scene) -> None:
    running = started(send(scene.client, given_options(["T", *"abc", "--rate", "2"])))
    assert len(sent(scene)) == 1
    scene.time.advance(0.4)
    assert len(sent(scene)) == 1
    scene.time.advance(0.1)
    assert len(sent(scene)) == 2
    scene.time.advance(0.5)
    assert result_of(running) == 0
    assert len(sent(scene)) == 3


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--delay-level", "3"], "DELAY", "3"),
        (["--delay", "1.5"], "TIMER_DELAY_MS", "1500"),
        (["--at", "1795248930123"], "TIMER_DELIVER_MS", "1795248930123"),
    ],
)
def test_delays(scene: Scene, words: list[str], name: str, value: str) -> None:
    run(scene, "x", *words)
    assert decode_properties(sent(scene)[0][0].properties)[name] == value


@pytest.mark.parametrize(("ending", "flag"), [("commit", 8), ("rollback", 12)])
def test_transactions_are_ended(scene: Scene, ending: str, flag: int) -> None:
    half = SendMessageResponseHeader(msg_id="0" * 32, queue_id=0, queue_offset=7)
    scene.connections.on(BROKER_A, calls.SEND_MESSAGE_V2, Reply(half))
    run(scene, "x", "--transaction", ending)
    assert decode_properties(sent(scene)[0][0].properties)["TRAN_MSG"] == "true"
    ((_, call, header, _),) = scene.connections.told
    assert call is END_TRANSACTION
    assert header.commit_or_rollback == flag


def test_an_empty_body_is_refused_before_it_leaves(scene: Scene) -> None:
    with pytest.raises(MessageIllegal, match="empty"):
        run(scene, "")
    assert sent(scene) == []


@pytest.mark.parametrize(
    "words", [["T", "--batch", "a", "-"], ["--batch", "T", "a", "-"], ["T", "a", "--batch", "-"]]
)
def test_options_may_stand_anywhere(words: list[str]) -> None:
    options = given_options(words)
    assert (options.topic, options.bodies, options.batch) == ("T", ("a", "-"), True)


def test_a_body_that_begins_with_a_dash_stands_after_two() -> None:
    assert given_options(["T", "--count", "2", "--", "-5", "--x"]).bodies == ("-5", "--x")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["T"], "give a BODY, - for standard input, --file or --body-file"),
        (["T", "x", "--json-lines"], "--json-lines is for lines of input: give - or --file"),
        (["T", "x", "-f", "%s"], "--format is for lines of input: give - or --file"),
        (["T", "-", "-f", "%s", "--json-lines"], "are both given: choose one"),
        (["T", "-", "-f", "%k"], "'%k' is not a format of lines such as '%k: %s': there is no %s"),
        (["T", "x", "--count", "0"], "'0' is not a whole number of at least 1"),
        (["T", "x", "--count", "two"], "'two'"),
        (["T", "x", "--property", "a"], "'--property': 'a' is not NAME=VALUE"),
        (["T", "x", "--property", "a="], "'a=' cannot be set as a property"),
        (["T", "x", "--file", "/no/such"], "/no/such cannot be read: No such file or directory"),
        (["T", "x", "--body-file", "/"], "/ cannot be read: it is a folder"),
        (["T", "x", "--property", "TAGS=a"], "used by system"),
        (["T", "x", "--tag", "a\x02b"], "'--tag': 'a\\x02b' contains "),
        (["T", "x", "--key", "\x01"], "'--key': '\\x01' contains "),
        (["T", "x", "--transaction", "maybe"], "'commit', 'rollback'"),
        ([], "Missing argument 'TOPIC'"),
        (["T", "-", "--count", "2"], "standard input"),
        (["T", "x", "--rate", "0"], "'0' is not a number above 0"),
        (["T", "x", "--rate", "inf"], "'inf' is not a number above 0"),
        (["T", "x", "--at", "first"], "'first' is not a time"),
        (["T", "x", "--delay", "1", "--delay-level", "1"], "not several"),
        (["T", "x", "--batch", "--delay", "1"], "leave --batch out"),
        (["T", "x", "--batch", "--transaction", "commit"], "leave --batch out"),
    ],
)
def test_wrong_usage(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert why in capsys.readouterr().err


@hypothesis.given(st.lists(st.integers(0, BATCH_BYTES * 2), max_size=20))
def test_batches_are_bounded_and_nothing_is_lost(sizes: list[int]) -> None:
    messages = [Message("T", bytes(size)) for size in sizes]
    cut = list(batches(messages))
    assert [message for batch in cut for message in batch] == messages
    for batch in cut:
        assert len(batch) == 1 or sum(len(message.body) for message in batch) <= BATCH_BYTES


def test_batches_have_a_bounded_number_of_messages() -> None:
    cut = list(batches([Message("T", b"x")] * (BATCH_MESSAGES + 1)))
    assert [len(batch) for batch in cut] == [BATCH_MESSAGES, 1]
