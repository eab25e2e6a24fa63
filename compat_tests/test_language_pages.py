# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/java.md and docs/go.md: built as the pages say, they send and receive."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.image import ROOT
from compat_tests.scene import poll
from txrocketmq.testing.server import Server, running

pytestmark = pytest.mark.timeout(1200)

_BUILD_TIMEOUT_S = 900
_RUN_TIMEOUT_S = 120
_GO_MODULE = Path(__file__).parent / "clients" / "go_recipe"
_NAMED = {"xml": r"<!-- (\S+) -->\n", "java": r"// (\S+)\n", "text": r"# (\S+)\n"}
"""How the first line of a block names its file, by language."""


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[Server]:
    """One of our servers."""
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _topics(rocketmq: Server) -> None:
    """Empties the store and creates the topics of the programs."""
    rocketmq.reset()
    for topic in ("Tour", "Orders"):
        rocketmq.create_topic(topic, queues=4)


def section(page: str, title: str) -> str:
    """The part of a page under a heading of the second level."""
    text = (ROOT / page).read_text("utf-8")
    return re.split(r"^## ", text.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]


def save_files(text: str, folder: Path) -> set[str]:
    """Writes the blocks that begin with the name of a file; these names."""
    names = set()
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if named := re.match(_NAMED.get(language, "(?!)"), block):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block, "utf-8")
            names.add(named[1])
    return names


def build(folder: Path, *goals: str) -> None:
    """Runs Maven; skips the test where there is none, or where it reaches no repository."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("there is no mvn on this machine")
    done = subprocess.run(
        [maven, "-B", "-q", *goals],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_TIMEOUT_S,
    )
    if "Could not transfer artifact" in done.stdout or "Unknown host" in done.stdout:
        pytest.skip(f"Maven cannot fetch the project's libraries: {done.stdout[-500:]}")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@contextmanager
def program(command: Sequence[str], folder: Path, wanted: str) -> Iterator[None]:
    """Runs a program until it has printed what is wanted; it is interrupted after the block."""
    said = folder / "said"
    with said.open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        poll(
            lambda: wanted in said.read_text("utf-8") or process.poll() is not None,
            f"it prints {wanted}",
            _RUN_TIMEOUT_S,
        )
        assert wanted in said.read_text("utf-8"), said.read_text("utf-8")[-4000:]
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def test_maven(rocketmq: Server, tmp_path: Path) -> None:
    names = save_files(section("docs/java.md", "Maven"), tmp_path)
    assert names == {"pom.xml", "src/main/java/Tour.java"}
    source = tmp_path / "src" / "main" / "java" / "Tour.java"
    source.write_text(source.read_text("utf-8").replace("127.0.0.1:9876", rocketmq.namesrv_addr))
    build(tmp_path, "compile")
    with program(["mvn", "-B", "-q", "exec:java"], tmp_path, "hello from Java"):
        assert [message.body for message in rocketmq.messages("Tour")] == [b"hello from Java"]


def test_spring_boot(rocketmq: Server, tmp_path: Path) -> None:
    names = save_files(section("docs/java.md", "Spring Boot"), tmp_path)
    assert {name.rpartition("/")[2] for name in names} == {
        "pom.xml",
        "application.properties",
        "OrdersApplication.java",
    }
    build(tmp_path, "package")
    command = ["java", "-jar", "target/orders-1.0.jar"]
    where = f"--rocketmq.name-server={rocketmq.namesrv_addr}"
    with program([*command, where], tmp_path, "reserved 3 apples"):
        (message,) = rocketmq.messages("Orders")
        assert (message.tags, message.body) == ("new", b'{"name":"apples","count":3}')


def test_go(rocketmq: Server, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go on this machine")
    (tour,) = re.findall(
        r"^```go\n(.*?)^```", (ROOT / "docs" / "go.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "main.go").write_text(tour.replace("127.0.0.1:9876", rocketmq.namesrv_addr))
    for name in ("go.mod", "go.sum"):  # with versions that are known to be there
        shutil.copy(_GO_MODULE / name, tmp_path)
    done = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", "tour", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    with program([f"{tmp_path}/tour"], tmp_path, "\nhello from Go\n"):
        assert [message.body for message in rocketmq.messages("Tour")] == [b"hello from Go"]
