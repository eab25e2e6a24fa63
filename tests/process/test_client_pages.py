# SPDX-License-Identifier: Apache-2.0
"""The examples of the pages about the client, each run as a program against a server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pages import Block, blocks
from txrocketmq.client import NoRoute, Producer, new_message
from txrocketmq.testing.server import Server

EXAMPLES = [
    block
    for block in blocks()
    if block.language == "python"
    and ("docs/client" in block.page or "from txrocketmq.client import" in block.text)
    and not block.text.startswith("#")  # a program with a name is run by the test of its page
]


def test_there_are_examples() -> None:
    pages = {block.page for block in EXAMPLES}
    assert len(pages) >= 5
    assert "README.md" in pages
    assert len(EXAMPLES) >= 8


@pytest.fixture(scope="module")
def topics(rocketmq_server: Server) -> None:
    """The topics of the examples: the name server may hear of a new one a moment later."""
    where = rocketmq_server.namesrv_addr
    for topic in ("Orders", "Prices", "Reservations", "Shipments", "Tour"):
        if topic == "Reservations":
            rocketmq_server.create_topic(topic)
        else:
            with Producer("makes-topics", namesrv_addr=where) as producer:
                producer.send(new_message(topic, "x"))
        with Producer("looks", create_topic_key="no-such-topic", namesrv_addr=where) as producer:
            deadline = time.monotonic() + 60
            while True:
                try:
                    producer.publish_queues(topic)
                    break
                except NoRoute:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: block.page)
def test_an_example_runs(example: Block, rocketmq_server: Server, tmp_path: Path) -> None:
    program = example.text.replace("127.0.0.1:9876", rocketmq_server.namesrv_addr)
    command = ["-W", "error", "-c", program]
    if "\ndef test_" in program:  # with the fixture `rocketmq`
        (tmp_path / "test_example.py").write_text(program, "utf-8")
        command = [
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:asyncio",
            "test_example.py",
        ]
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=150, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr == ""
    assert done.stdout.strip(), "it prints nothing"
