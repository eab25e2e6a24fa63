# SPDX-License-Identifier: Apache-2.0
"""The Python client `rocketmq` 0.4.4 (librocketmq) produces and consumes, alone and with Java.

Without batches: `send_batch` of this release stores one message without a body, in the original
broker 4.9.7, too.
"""

import re
import subprocess
from pathlib import Path

import pytest

from compat_tests.java_client import message, text
from compat_tests.peers import Broker
from compat_tests.python_client import PythonClientUnavailable, install, run
from compat_tests.scene import Scene

COUNT = 20
BODIES = {f"python-{number} 漢字" for number in range(COUNT)}


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return install()
    except PythonClientUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.timeout(400)  # the first time it is installed
def test_python_produces_and_consumes(
    python: Path, broker: Broker, scene: Scene, tmp_path: Path
) -> None:
    topic, where = scene.topic(queues=4), {"namesrv": broker.name_server.address}
    produce = {"op": "produce", "topic": topic, "group": scene.unique("python"), "count": COUNT}
    sent = run(python, tmp_path, **where, **produce)
    assert [event["status"] for event in sent] == [0] * COUNT

    for op in ("consume", "pull"):
        group = scene.unique(f"python-{op}")
        received = run(python, tmp_path, **where, op=op, topic=topic, group=group, count=COUNT)
        assert {event["body"] for event in received} == BODIES
        for event in received:
            number = event["body"].removeprefix("python-").split()[0]
            assert (event["tags"], event["keys"]) == ("python", f"key-{number}")
            assert event["number"] == number


@pytest.mark.timeout(400)
def test_python_and_java_read_each_other(
    python: Path, broker: Broker, scene: Scene, tmp_path: Path
) -> None:
    where = {"namesrv": broker.name_server.address}
    topic = scene.unique("created-by-python")
    produce = {"op": "produce", "topic": topic, "group": scene.unique("python"), "count": COUNT}
    run(python, tmp_path, **where, **produce)
    scene.wait_for_route(topic)
    received = scene.push_consumer(topic, scene.unique("group"), expression="python").wait_for(
        COUNT
    )
    assert {text(item) for item in received} == BODIES

    topic = scene.topic(queues=2)
    bodies = ["plain", "x" * 10_000]  # the second is compressed
    scene.producer().send([message(topic, body, tags="java", keys="k") for body in bodies])
    group = scene.unique("python")
    found = run(python, tmp_path, **where, op="consume", topic=topic, group=group, count=2)
    assert {event["body"] for event in found} == set(bodies)


@pytest.mark.timeout(400)
def test_the_program_of_the_page(
    python: Path, broker: Broker, scene: Scene, tmp_path: Path
) -> None:
    topic, group = scene.topic("Tour", queues=4), scene.unique("page")
    page = (Path(__file__).parents[1] / "docs" / "client_migration.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(# with_librocketmq\.py\n.*?)```", page, re.DOTALL)
    program = program.replace("127.0.0.1:9876", broker.name_server.address)
    program = program.replace('"Tour"', f'"{topic}"').replace("tour-", f"{group}-")
    done = subprocess.run(
        [str(python), "-u", "-c", program], env={"HOME": str(tmp_path)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "hello from Python" in done.stdout.splitlines(), done.stdout
