# SPDX-License-Identifier: Apache-2.0
"""The commands and programs of docs/grpc.md as they are, except for the ports."""

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from compat_tests import probe
from compat_tests.engine import Engine, LocalProcess
from compat_tests.jars import grpc_client
from compat_tests.java_client import compile_sources
from compat_tests.peers import Broker, Origin, Ours
from compat_tests.python_client import GRPC, PythonClientUnavailable, install

PAGE = (Path(__file__).parents[1] / "docs" / "grpc.md").read_text("utf-8")
OURS = Path(sys.executable).with_name("txrocketmq")
READY_S = 240
TIMEOUT_S = 300


def block(language: str, having: str = "") -> str:
    """The first block of this language with this text."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(each for each in found if having in each)


def run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.timeout(1200)
def test_the_page(origin: Origin, broker: Broker, engine: Engine, test_folder: Path) -> None:
    if not isinstance(origin, Ours):
        pytest.skip("the page is about our servers")
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    folder = test_folder / "grpc-page"  # containers see no other
    folder.mkdir()
    port = probe.free_ports([0, 1])

    def here(text: str) -> str:
        text = text.replace("127.0.0.1:9876", broker.name_server.address)
        return text.replace("8081", str(port)).replace("8080", str(port + 1))

    (folder / "pom.xml").write_text(block("xml"))
    (folder / "rmq-proxy.json").write_text(here(block("json", "remotingListenPort")))
    fetch, start = (shlex.split(here(line)) for line in block("sh", "ProxyStartup").splitlines())
    run(fetch, folder)
    start[1:1] = [f"-Duser.home={folder}"]
    proxy = LocalProcess("proxy", ["env", f"--chdir={folder}", *start], {}, folder)
    try:
        deadline = time.monotonic() + READY_S
        while "rocketmq-proxy startup successfully" not in proxy.log():
            assert proxy.alive(), proxy.log()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (sent,) = re.findall(r"^\$ txrocketmq (.*)$", block("console", "send"), re.MULTILINE)
        command = [*shlex.split(sent), "--namesrv", broker.name_server.address]
        assert "SEND_OK" in run([str(OURS), *command], folder)

        source = folder / "Orders.java"
        source.write_text(here(block("java")))
        classes = compile_sources("grpc-page", engine, [source], grpc_client(), "Orders")
        shutil.move(classes, folder / "classes")
        path = f"{folder / 'classes'}:{grpc_client()}/*"
        assert "hello from Java" in run(
            ["java", f"-Duser.home={folder}", "-cp", path, "Orders"], folder
        )

        try:
            python = install(GRPC)
        except PythonClientUnavailable as error:
            pytest.skip(str(error))
        assert "hello from Python" in run([str(python), "-c", here(block("python"))], folder)
    finally:
        proxy.kill()
