# SPDX-License-Identifier: Apache-2.0
"""The fixtures of the scenarios: the servers chosen by ``--server`` and the official clients.

Servers and JVMs live for the whole session; topics, groups and clients belong to one test.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # for "compat_tests" itself

from compat_tests.cache import exclusive
from compat_tests.docker_engine import DockerEngine, EngineUnavailable
from compat_tests.engine import ContainerEngine, Engine, open_java
from compat_tests.image import NAME, NotBuilt, build, distribution
from compat_tests.jars import RELEASES, SERVERS, JarsUnavailable
from compat_tests.java_client import ClientJvm, compile_clients
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours, Server, running
from compat_tests.pops import SETTINGS as POP_SETTINGS
from compat_tests.scene import Scene
from compat_tests.schedule import in_order
from tests import durations, failures

_ENGINE: pytest.StashKey[Engine | str] = pytest.StashKey()
_FOLDER: pytest.StashKey[Path] = pytest.StashKey()
_SERVERS: list[Server] = []
_JVMS: dict[str, ClientJvm] = {}
_CHECKS: Final = {
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionOpBatchInterval": "200",
}
"""Settings with which brokers soon ask what has become of transactions."""


def pytest_configure(config: pytest.Config) -> None:
    """Resets signals to what they mean at a terminal, also for runs under nohup or a script."""
    durations.register(config)
    failures.register(config)
    config.addinivalue_line(
        "markers", "both_releases: wire or behaviour of the Java clients differ between releases"
    )
    config.addinivalue_line(
        "markers", "whole_matrix: others prove the same of each part; runs with --all-releases"
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("compat_tests")
    group.addoption(
        "--server",
        choices=["ours", *(f"original-{release}" for release in SERVERS)],
        default="ours",
        help="whose name server and broker the official clients talk to (default: ours)",
    )
    group.addoption(
        "--java",
        choices=["container", "local"],
        default="container",
        help="where Java runs (default: container; local where no container engine can be had)",
    )
    group.addoption(
        "--all-releases",
        action="store_true",
        help="every scenario with each release of the Java clients, and the whole matrix of others",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a scenario with both releases of the Java clients where they differ.

    All others run with the later one: the earlier does the same on the wire.
    """
    if "jvm" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("both_releases") is not None
        is_both = marked or metafunc.config.getoption("--all-releases")
        metafunc.parametrize("jvm", RELEASES if is_both else RELEASES[-1:], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs long modules first, and what belongs to the whole matrix only if that is asked for."""
    if not config.getoption("--all-releases"):
        left_out = [item for item in items if item.get_closest_marker("whole_matrix")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items[:] = in_order(items)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Does the set-up that may take long before workers start, since workers cannot print."""
    if session.config.getoption("numprocesses", None) and not session.config.option.collectonly:
        _prepare(session.config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Does the set-up that may take long here, where no test's timeout is running yet."""
    here = Path(__file__).parent
    if session.config.option.collectonly:
        return
    if any(here in item.path.parents for item in session.items):
        _prepare(session.config)


def _prepare(config: pytest.Config) -> None:
    """Prepares Java, the servers' releases and the folder for all files; keeps what is there."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def say(text: str) -> None:
        if reporter is not None:
            reporter.write_line(f"compat_tests: {text}")

    folder = Path(config._tmp_path_factory.mktemp("compat"))  # type: ignore[attr-defined]
    config.stash[_FOLDER] = folder
    try:
        engine = open_java(config.option.java, folder, say)
        config.stash[_ENGINE] = engine
        say(engine.description)
        for release in RELEASES:
            compile_clients(release, engine)
    except (EngineUnavailable, JarsUnavailable) as error:
        config.stash[_ENGINE] = f"no official Java clients here: {error}"
        say(str(error))
    say(f"servers under test: {config.option.server}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    engine = terminalreporter.config.stash.get(_ENGINE, None)
    if engine is not None:
        server = terminalreporter.config.option.server
        described = engine if isinstance(engine, str) else engine.description
        terminalreporter.write_line(f"compat_tests: servers: {server}; {described}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    for jvm in _JVMS.values():
        jvm.kill()
    for server in _SERVERS:
        server.close()
    engine = session.config.stash.get(_ENGINE, None)
    if engine is not None and not isinstance(engine, str):
        engine.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed:
        for server in _SERVERS:
            if server.is_running():
                report.sections.append((f"{type(server).__name__} log", server.log_tail()))
        for jvm in _JVMS.values():
            report.sections.append((f"Java client {jvm.release}", jvm.diagnosis()))
    return report  # type: ignore[return-value]


@pytest.fixture(scope="session")
def work_folder(request: pytest.FixtureRequest) -> Path:
    """The folder for all files of servers and clients; containers see no other folder."""
    return request.config.stash[_FOLDER]


@pytest.fixture
def test_folder(work_folder: Path) -> Path:
    """The folder for the files of one test."""
    return Path(tempfile.mkdtemp(prefix="test-", dir=work_folder))


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine that runs Java."""
    found = request.config.stash[_ENGINE]
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="session")
def docker_engine(request: pytest.FixtureRequest, engine: Engine) -> DockerEngine:
    """The Docker engine, for what needs one; only our own servers are tested in images."""
    if request.config.getoption("--server") != "ours":
        pytest.skip("the image is of our own servers")
    if not isinstance(engine, ContainerEngine):
        pytest.skip(engine.description)
    if not engine.docker.client.networks.list(names=["bridge"]):
        pytest.skip("the Docker engine that runs here has no bridge, so it maps no ports")
    return engine.docker


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel, as ``make dist`` makes them.

    Workers share it: the first that needs it has it made, and others wait meanwhile.
    """
    base = tmp_path_factory.getbasetemp()
    checkout = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "distribution"
    with exclusive("distribution"):
        if not (checkout / "dist").is_dir():
            checkout.mkdir(exist_ok=True)
            try:
                distribution(checkout)
            except NotBuilt as error:
                shutil.rmtree(checkout / "dist", ignore_errors=True)
                pytest.fail(str(error))
    return checkout / "dist"


@pytest.fixture(scope="session")
def image(docker_engine: DockerEngine, dist: Path) -> str:
    """The name of our container image, built from this checkout."""
    try:
        build(docker_engine, dist, NAME, print)
    except NotBuilt as error:
        pytest.fail(str(error))
    return NAME


@pytest.fixture(scope="session")
def origin(request: pytest.FixtureRequest, engine: Engine) -> Origin:
    """The origin of the servers under test."""
    server: str = request.config.getoption("--server")
    return Ours() if server == "ours" else Original(server.removeprefix("original-"), engine)


@pytest.fixture(scope="session")
def name_server(origin: Origin, work_folder: Path) -> NameServer:
    """The name server that most tests share."""
    server = NameServer(origin, work_folder / "namesrv")
    _SERVERS.append(server)
    server.start()
    return server


@pytest.fixture(scope="session")
def broker(origin: Origin, name_server: NameServer, work_folder: Path) -> Broker:
    """The broker that most tests share."""
    server = Broker(origin, work_folder / "broker", name_server, "broker-a", {})
    _SERVERS.append(server)
    server.start()
    return server


@pytest.fixture(scope="session")
def strict_broker(origin: Origin, work_folder: Path) -> Broker:
    """A broker, with a name server of its own, that creates no topics by itself."""
    names = NameServer(origin, work_folder / "strict-namesrv")
    settings = {"autoCreateTopicEnable": "false"}
    server = Broker(origin, work_folder / "strict-broker", names, "broker-strict", settings)
    _SERVERS.extend((names, server))
    names.start()
    server.start()
    return server


@pytest.fixture
def own_broker(origin: Origin, test_folder: Path) -> Iterator[Broker]:
    """A broker and a name server for one test, which may stop and kill them."""
    names = NameServer(origin, test_folder / "own-namesrv")
    broker = Broker(origin, test_folder / "own-broker", names, "broker-own", _CHECKS)
    with running(names, broker):
        yield broker


@pytest.fixture(scope="module", params=["false", "true"], ids=["written", "merged"])
def pop_broker(
    request: pytest.FixtureRequest, origin: Origin, work_folder: Path
) -> Iterator[Broker]:
    """A broker that either writes what is popped at once, or first keeps it in memory."""
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 has no POP")
    folder = work_folder / f"{request.module.__name__.rpartition('.')[2]}-{request.param}"
    names = NameServer(origin, folder / "namesrv")
    settings = {**POP_SETTINGS, "enablePopBufferMerge": request.param}
    broker = Broker(origin, folder, names, "broker-p", settings)
    with running(names, broker):
        yield broker


@pytest.fixture
def jvm(request: pytest.FixtureRequest, engine: Engine, work_folder: Path) -> ClientJvm:
    """The JVM with the official clients; see pytest_generate_tests for the releases."""
    return _jvm(request.param, engine, work_folder)


@pytest.fixture(scope="session")
def first_jvm(engine: Engine, work_folder: Path) -> ClientJvm:
    """The JVM of the first release, for what need not be done with each of them."""
    return _jvm(RELEASES[0], engine, work_folder)


def _jvm(release: str, engine: Engine, work_folder: Path) -> ClientJvm:
    if release not in _JVMS:
        _JVMS[release] = ClientJvm(release, engine, work_folder / f"java-{release}")
    return _JVMS[release]


@pytest.fixture(scope="session")
def jvms(engine: Engine, work_folder: Path) -> dict[str, ClientJvm]:
    """The JVMs of all releases, for tests that use them together."""
    return {release: _jvm(release, engine, work_folder) for release in RELEASES}


@pytest.fixture
def second_jvm(jvm: ClientJvm, engine: Engine, work_folder: Path) -> Iterator[ClientJvm]:
    """Another JVM of the same release, for a test that may kill it."""
    folder = work_folder / f"java-{jvm.release}-{time.monotonic_ns()}"
    other = ClientJvm(jvm.release, engine, folder)
    yield other
    other.kill()


@pytest.fixture
def scene(jvm: ClientJvm, broker: Broker) -> Iterator[Scene]:
    """The topics and clients of one test on the shared broker."""
    scene = Scene(jvm, broker)
    yield scene
    scene.close()


@pytest.fixture
def strict_scene(jvm: ClientJvm, strict_broker: Broker) -> Iterator[Scene]:
    """The topics and clients of one test on the strict broker."""
    scene = Scene(jvm, strict_broker)
    yield scene
    scene.close()


@pytest.fixture
def pops(jvms: dict[str, ClientJvm], pop_broker: Broker) -> Iterator[Scene]:
    """The topics and clients of one test on a broker whose messages they pop."""
    scene = Scene(jvms[RELEASES[-1]], pop_broker)
    yield scene
    scene.close()
