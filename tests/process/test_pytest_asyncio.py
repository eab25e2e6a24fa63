# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio beside pytest-asyncio, whose loops come and go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = """
import asyncio
import sys
import threading

import pytest
import pytest_asyncio

from txrocketmq.client import ConsumeFrom, aio, new_message

FIRST = ConsumeFrom.FIRST_OFFSET
loops = []


@pytest_asyncio.fixture
async def producer(rocketmq_server):
    async with rocketmq_server.aio.producer("fixture") as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def consumer(rocketmq_server):
    rocketmq_server.create_topic("Kept")
    async with await rocketmq_server.aio.consumer("Kept", group="kept") as made:
        yield made


@pytest.mark.asyncio
@pytest.mark.parametrize("number", range(3))
async def test_each_has_a_loop_of_its_own(producer, rocketmq_server, number):
    loop = asyncio.get_running_loop()
    assert loop not in loops
    loops.append(loop)
    got, where = [], set()
    enough = asyncio.Event()

    async def listen(messages, context):
        await asyncio.sleep(0)
        where.add(asyncio.get_running_loop())
        got.extend(each.body for each in messages)
        enough.set()

    topic = f"Numbers{number}"
    await producer.send(new_message(topic, b"x"))
    async with await rocketmq_server.aio.consumer(topic, listen, group=topic):
        async with asyncio.timeout(60):
            await enough.wait()
    assert (got, where) == ([b"x"], {loop})


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("number", range(2))
async def test_a_client_of_a_module_lives_through_its_tests(consumer, rocketmq_server, number):
    await rocketmq_server.aio.send("Kept", str(number))
    async with asyncio.timeout(60):
        async for message in consumer:
            assert message.body == str(number).encode()
            break


@pytest.mark.asyncio
async def test_what_is_cancelled_leaves_the_client_whole(producer, rocketmq_server):
    await rocketmq_server.aio.create_topic("Empty")
    async with await rocketmq_server.aio.consumer("Empty", group="empty") as lite:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await lite.poll(60_000)
        await rocketmq_server.aio.send("Empty", "y")
        async with asyncio.timeout(60):
            while not (found := await lite.poll(1_000)):
                pass
        assert found[0].body == b"y"


def test_nothing_is_left():
    assert "twisted.internet.reactor" not in sys.modules
    names = {each.name for each in threading.enumerate()}
    assert not [name for name in names if name.startswith("txrocketmq-function")]
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_it_works_beside_pytest_asyncio(tmp_path: Path, mode: str) -> None:
    (tmp_path / "test_beside.py").write_text(TESTS)
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    scope = "asyncio_default_fixture_loop_scope=function"  # which is asked for
    command = [sys.executable, "-m", "pytest", "-q", *plugins, f"--asyncio-mode={mode}"]
    done = subprocess.run(
        [*command, "-o", scope, "-W", "error", "test_beside.py"],
        capture_output=True, text=True, check=False, timeout=150, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout
