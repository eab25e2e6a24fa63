# SPDX-License-Identifier: Apache-2.0
"""The port of metrics, asked in HTTP over a wire that is a string."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure

from txrocketmq.remoting.host import exporter as module
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.exporter import LEFT_OUT, MOST_TEXTS, Exporter, exposition


class Scene:
    """A server with two metrics, whose collecting takes a few steps."""

    def __init__(self) -> None:
        self.reactor = MemoryReactorClock()
        self.why_not = ""
        self.collected = 0
        self.step_s = 0.0
        self.exporter = Exporter(Clock(self.reactor), self.collect, lambda: self.why_not)
        self.exporter.listen(5557, "127.0.0.1")

    def collect(self) -> Iterator[Metric]:
        self.collected += 1
        for topic in ("a", 'b"\n'):
            gauge = GaugeMetricFamily("up", "whether it is", labels=["topic"])
            gauge.add_metric([topic], 1)
            self.reactor.rightNow += self.step_s
            yield gauge

    def ask(self, path: str, method: str = "GET") -> StringTransport:
        factory: Any = self.reactor.tcpServers[0][1]
        protocol = factory.buildProtocol(None)
        wire = StringTransport()
        protocol.makeConnection(wire)
        protocol.dataReceived(f"{method} {path} HTTP/1.0\r\n\r\n".encode())
        if not self.step_s:
            self.run()
        return wire

    def run(self) -> None:
        for _ in range(50):
            self.reactor.advance(0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def answer(wire: StringTransport) -> tuple[int, str]:
    head, _, body = wire.value().decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


def test_it_listens_where_it_is_told(scene: Scene) -> None:
    ((port, _, _, interface),) = scene.reactor.tcpServers
    assert (port, interface) == (5557, "127.0.0.1")


def test_metrics_of_the_server_and_of_its_process(scene: Scene) -> None:
    code, body = answer(scene.ask("/metrics"))
    assert code == 200
    assert body.count("# TYPE up gauge\n") == 1
    assert 'up{topic="a"} 1.0\n' in body
    assert 'up{topic="b\\"\\n"} 1.0\n' in body
    assert "process_resident_memory_bytes" in body
    assert "python_info" in body


def test_health_and_readiness(scene: Scene) -> None:
    assert answer(scene.ask("/health")) == (200, "alive\n")
    assert answer(scene.ask("/ready")) == (200, "ready\n")
    scene.why_not = "the disk is full"
    assert answer(scene.ask("/health")) == (200, "alive\n")
    assert answer(scene.ask("/ready")) == (503, "the disk is full\n")


@pytest.mark.parametrize("path", ["/nothing", "/metrics/more", "/ready/x"])
def test_what_is_not_there(scene: Scene, path: str) -> None:
    assert answer(scene.ask(path))[0] == 404


def test_other_methods(scene: Scene) -> None:
    assert answer(scene.ask("/health", "HEAD")) == (200, "")
    assert answer(scene.ask("/metrics", "POST"))[0] == 405


def test_collecting_lets_others_have_their_turn(scene: Scene) -> None:
    scene.step_s = 0.003
    first = scene.ask("/metrics")
    assert first.value() == b"", "one step took the slice"
    second = scene.ask("/metrics")
    scene.run()
    assert answer(first)[0] == 200
    assert answer(first)[1] == answer(second)[1]
    assert scene.collected == 1, "who comes meanwhile gets the same answer"
    scene.ask("/metrics")
    assert scene.collected == 2


def test_a_failure_is_told_and_is_not_the_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Iterator[Metric]:
        yield GaugeMetricFamily("up", "whether it is", value=1)
        raise ValueError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr(scene.exporter, "_collect", fail)
        assert answer(scene.ask("/metrics")) == (
            503,
            "metrics could not be collected: see the log\n",
        )
    assert answer(scene.ask("/metrics"))[0] == 200


def test_whoever_has_gone_is_not_answered(scene: Scene) -> None:
    scene.step_s = 0.003
    factory: Any = scene.reactor.tcpServers[0][1]
    protocol = factory.buildProtocol(None)
    wire = StringTransport()
    protocol.makeConnection(wire)
    protocol.dataReceived(b"GET /metrics HTTP/1.0\r\n\r\n")
    protocol.connectionLost(Failure(ConnectionDone()))
    scene.run()
    assert wire.value() == b""


def test_a_long_answer_waits_for_whoever_reads_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def much() -> Iterator[Metric]:
        for number in range(1_000):
            gauge = GaugeMetricFamily("up", "whether it is", labels=["topic"])
            for each in range(32):
                gauge.add_metric([f"topic-{number}-{each}"], 1)
            yield gauge

    monkeypatch.setattr(scene.exporter, "_collect", much)
    scene.step_s = 0.003
    wire = scene.ask("/metrics")
    while not wire.value():
        scene.reactor.advance(0)
    before = len(wire.value())
    assert before < 200_000
    producer: Any = wire.producer
    producer.pauseProducing()
    scene.run()
    assert len(wire.value()) == before
    producer.resumeProducing()
    scene.run()
    code, body = answer(wire)
    assert code == 200
    assert sum(line.startswith("up{") for line in body.splitlines()) == 32_000
    assert f"Content-Length: {len(body)}" in wire.value().decode()


def test_after_its_end_nothing_is_collected(scene: Scene) -> None:
    scene.step_s = 0.003
    wire = scene.ask("/metrics")
    scene.exporter.stop()
    scene.exporter.stop()
    scene.run()
    assert wire.value() == b""


def test_an_exposition_without_metrics_of_ours() -> None:
    assert b"process_" in exposition(iter(()))


def gauges(count: int, topic: str = "{}") -> Iterator[Metric]:
    for at in range(count):
        gauge = GaugeMetricFamily("many", "foreign names", labels=["topic"])
        gauge.add_metric([topic.format(at)], at)
        yield gauge
    yield GaugeMetricFamily("other", "not many", value=1)


def test_series_are_bounded_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SERIES", 3)
    text = exposition(gauges(3)).decode()
    assert text.count("many{topic=") == 3
    assert LEFT_OUT not in text
    text = exposition(gauges(5)).decode()
    assert text.count("many{topic=") == 3
    assert "\nother 1.0\n" in text
    assert f'\n{LEFT_OUT}{{metric="many"}} 2.0\n' in text


def test_too_many_series_are_logged_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SERIES", 1)
    with capturedLogs() as events:
        for _ in range(3):
            answer(scene.ask("/metrics"))
    (event,) = [each for each in events if each.get("name") == "up"]
    assert formatEvent(event) == ("the metric up has more than 1 series: 1 of them are left out")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b[31m", r"\\x1b[31m"),
        ("a\r\tb\x7f", r"a\\x0d\\x09b\\x7f"),
        ("\x9b", r"\\x9b"),
        ("\ud800", r"\\ud800"),
        ("Grüße\n", r"Grüße\n"),
    ],
)
def test_names_are_no_commands_to_a_terminal(name: str, shown: str) -> None:
    text = exposition(gauges(1, name)).decode()
    assert f'many{{topic="{shown}"}} 0.0' in text
    families = {each.name: each for each in text_string_to_metric_families(text)}
    assert len(families["many"].samples) == 1


def test_those_who_read_too_slowly_have_to_go(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> StringTransport:
        with monkeypatch.context() as patched:
            patched.setattr(module._Chunks, "_write", lambda _: None)
            return scene.ask("/metrics")

    wires = [slow() for _ in range(MOST_TEXTS)]
    for _ in range(3):
        assert answer(scene.ask("/metrics"))[0] == 200
    assert [wire.disconnecting for wire in wires] == [True] + [False] * (MOST_TEXTS - 1)
    slow()
    assert [wire.disconnecting for wire in wires] == [True] + [False] * (MOST_TEXTS - 1)
    slow()
    assert [wire.disconnecting for wire in wires] == [True, True] + [False] * (MOST_TEXTS - 2)
