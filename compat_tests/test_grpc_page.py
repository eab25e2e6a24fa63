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
from compat_tests.java_client import compile_sources
from compat_tests.peers import Broker, Origin, Ours, Proxy
from compat_tests.python_client import GRPC, PythonClientUnavailable, install

GO_MODULE = Path(__file__).parent / "clients" / "grpc_go"
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


class Page:
    """The page with the addresses of one broker and one proxy."""

    def __init__(self, broker: Broker, port: int, folder: Path) -> None:
        self._namesrv = broker.name_server.address
        self._port = port
        self._folder = folder

    def block(self, language: str, having: str = "") -> str:
        """A block of the page."""
        text = block(language, having).replace("127.0.0.1:9876", self._namesrv)
        return text.replace("8081", str(self._port)).replace("8080", str(self._port + 1))

    def command(self, words: str) -> str:
        """Runs a command of txrocketmq; what it prints."""
        return run([str(OURS), *shlex.split(words), "--namesrv", self._namesrv], self._folder)

    def programs(self, engine: Engine) -> None:
        """Runs the programs, which send and receive."""
        (sent,) = re.findall(r"^\$ txrocketmq (.*)$", block("console", "send"), re.MULTILINE)
        assert "SEND_OK" in self.command(sent)
        assert "hello from Java" in self._java(engine)
        assert "hello from Python" in self._python()
        if shutil.which("go") is not None:
            assert "hello from Go" in self._go()

    def _java(self, engine: Engine) -> str:
        folder = self._folder / "java"
        folder.mkdir()
        (folder / "pom.xml").write_text(block("xml", "rocketmq-client-java"))
        fetch, start = block("sh", "Orders.java").splitlines()
        run(shlex.split(fetch), folder)
        source = folder / "Orders.java"
        source.write_text(self.block("java"))
        classes = compile_sources("grpc-page", engine, [source], folder / "client", "Orders")
        shutil.move(classes, folder / "classes")
        words = [word.replace("client/*", "classes:client/*") for word in shlex.split(start)]
        words[1:1] = [f"-Duser.home={folder}"]
        return run([word.removesuffix(".java") for word in words], folder)

    def _python(self) -> str:
        try:
            python = install(GRPC)
        except PythonClientUnavailable as error:
            pytest.skip(str(error))
        return run([str(python), "-c", self.block("python")], self._folder)

    def _go(self) -> str:
        folder = self._folder / "go"
        folder.mkdir()
        (folder / "main.go").write_text(self.block("go"))
        for name in ("go.mod", "go.sum"):  # with versions that are known to be there
            shutil.copy(GO_MODULE / name, folder)
        run(["go", "build", "-buildvcs=false", "-o", "orders", "."], folder)
        return run(["env", f"HOME={folder}", "./orders"], folder)


@pytest.fixture
def folder(origin: Origin, test_folder: Path) -> Path:
    """A folder for what the page has in files."""
    if not isinstance(origin, Ours):
        pytest.skip("the page is about our servers")
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    folder = test_folder / "grpc-page"  # containers see no other
    folder.mkdir()
    return folder


@pytest.mark.timeout(1200)
def test_the_page_with_our_proxy(broker: Broker, engine: Engine, folder: Path) -> None:
    proxy = Proxy(None, folder / "proxy", broker.name_server)
    proxy.start()
    try:
        page = Page(broker, proxy.port, folder)
        for line in block("sh", "topics create").splitlines():
            page.command(line.removeprefix("txrocketmq "))
        page.programs(engine)
    finally:
        proxy.kill()


@pytest.mark.timeout(1200)
def test_the_page_with_the_proxy_of_the_original(
    broker: Broker, engine: Engine, folder: Path
) -> None:
    page = Page(broker, probe.free_ports([0, 1]), folder)
    (folder / "pom.xml").write_text(block("xml", "rocketmq-proxy"))
    (folder / "rmq-proxy.json").write_text(page.block("json", "remotingListenPort"))
    fetch, start = map(shlex.split, page.block("sh", "ProxyStartup").splitlines())
    run(fetch, folder)
    start[1:1] = [f"-Duser.home={folder}"]
    proxy = LocalProcess("proxy", ["env", f"--chdir={folder}", *start], {}, folder)
    try:
        deadline = time.monotonic() + READY_S
        while "rocketmq-proxy startup successfully" not in proxy.log():
            assert proxy.alive(), proxy.log()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        page.programs(engine)
    finally:
        proxy.kill()
