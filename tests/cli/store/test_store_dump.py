# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stored import MESSAGES, NOW_MS, contents, filled_store, spoil
from txrocketmq.cli.store.store import main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    filled_store(tmp_path)
    return tmp_path


def dumped(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    before = contents(root)
    assert main(["dump", "--json", str(root), *options]) == 0
    assert contents(root) == before
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_whole_log(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = dumped(root, capsys)
    assert [each["body"] for each in found] == [f"body-{number}" for number in range(MESSAGES)]
    assert all(each["isBodySound"] for each in found)
    offset = found[100]["commitLogOffset"]
    rest = dumped(root, capsys, "--offset", str(offset), "--count", "2")
    assert rest == found[100:102]
    after = dumped(root, capsys, "--offset", str(offset + 1), "--count", "1")
    assert after == found[101:102]


def test_a_topic_and_a_queue(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = dumped(root, capsys, "--topic", "Topic1")
    assert len(found) == MESSAGES // 2
    assert [each["queueOffset"] for each in found] == [*range(75), *range(75)]
    found = dumped(
        root, capsys, "--topic", "Topic1", "--queue", "1", "--queue-offset", "70", "--count", "3"
    )
    places = [(each["topic"], each["queueId"], each["queueOffset"]) for each in found]
    assert places == [("Topic1", 1, 70), ("Topic1", 1, 71), ("Topic1", 1, 72)]


def test_a_key(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key in ("key-7", "unique-7"):
        found = dumped(root, capsys, "--topic", "Topic1", "--key", key)
        assert [each["body"] for each in found] == ["body-7"]
    assert main(["dump", str(root), "--topic", "Topic1", "--key", "none"]) == 1
    assert "there is no such message" in capsys.readouterr().err


def test_lines_for_people(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for how, body in (("text", "body-1"), ("hex", b"body-1".hex()), ("length", "<6 bytes>")):
        topic = ["--topic", "Topic1", "--count", "1", "--body", how]
        assert main(["dump", str(root), *topic]) == 0
        line = capsys.readouterr().out
        assert "Topic1/0@0 {keys=key-1} " in line
        assert line.endswith(f" {body}\n")
    path = min((root / "commitlog").iterdir())
    spoil(path, path.read_bytes().index(b"body-"), b"\xff")
    assert main(["dump", str(root), "--count", "1"]) == 0
    wrong = (b"\xff" + b"ody-0").hex()
    assert f"(wrong CRC) {wrong}" in capsys.readouterr().out
    (first,) = dumped(root, capsys, "--count", "1", "--body", "hex")
    assert (first["isBodySound"], first["bodyHex"]) == (False, wrong)


def test_a_store_that_a_broker_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = filled_store(tmp_path, closes=False)
    assert main(["dump", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == MESSAGES
    assert "a broker uses the store; this is what is in it now" in said.err
    store.stop(NOW_MS)


def test_a_store_with_losses(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    max((root / "commitlog").iterdir()).unlink()
    assert main(["dump", str(root), "--json"]) == 0
    said = capsys.readouterr()
    assert 0 < len(said.out.splitlines()) < MESSAGES
    assert "queues refer to" in said.err


def test_an_error_does_nothing_to_a_terminal(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = {"T\x1b[31m": {"topicName": "T\x1b[31m", "attributes": {"queue.type": "BatchCQ"}}}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    (root / "consumequeue" / "Topic0").rename(root / "consumequeue" / "T\x1b[31m")
    for name in ("dump", "repair"):
        assert main([name, str(root)]) == 1
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert r"T\x1b[31m are of batches" in said.out + said.err
