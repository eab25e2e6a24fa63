# SPDX-License-Identifier: Apache-2.0
"""The dashboard of docs/grafana with data: a real Prometheus answers the queries of each panel.

Its fields are those that Grafana's own types have (the package grafana-foundation-sdk).

Name server and broker have all that there are panels for: official producers and consumers, a lag,
transactions, timer messages, messages that are popped and come back, dead letters. Every expression
has to be one, and to give what can be drawn.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests import probe
from compat_tests.debian import NotInstalled
from compat_tests.java_client import ClientJvm, message
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.pops import Popped
from compat_tests.prometheus import RATE_INTERVAL, Prometheus, watching
from compat_tests.python_client import PythonClientUnavailable, install
from compat_tests.scene import Scene, poll
from compat_tests.transactions import TransactionProducer, transactional

DASHBOARD: Final = Path(__file__).parents[1] / "docs" / "grafana" / "txrocketmq.json"
SEND_MSG_BACK: Final = 36
SECONDS: Final = 30
GRAFANA: Final = "grafana-foundation-sdk==1769699998!10.1.0"
FIELDS: Final = Path(__file__).parent / "clients" / "python" / "dashboard_fields.py"


@pytest.fixture(scope="module")
def watched(origin: Origin, work_folder: Path) -> Iterator[tuple[Broker, Prometheus]]:
    """A broker and its name server, which a Prometheus watches."""
    if origin.name != "ours":
        pytest.skip("the dashboard has panels for our name server, and of our processes")
    ports = [probe.free_ports([0]) for _ in range(2)]
    settings = [
        {
            "metricsExporterType": "PROM",
            "metricsPromExporterPort": str(port),
            "metricsPromExporterHost": "127.0.0.1",
        }
        for port in ports
    ]
    names = NameServer(origin, work_folder / "dashboard-namesrv")
    names.settings.update(settings[0])
    broker = Broker(origin, work_folder / "dashboard-broker", names, "broker-d", settings[1])
    targets = dict(zip(("namesrv", "broker"), ports, strict=True))
    try:
        with running(names, broker), watching(work_folder / "prometheus", targets) as prometheus:
            yield broker, prometheus
    except NotInstalled as error:
        pytest.skip(str(error))


class Load:
    """What happens at the broker; each round a little of everything."""

    def __init__(self, jvm: ClientJvm, broker: Broker) -> None:
        scene = self.scene = Scene(jvm, broker)
        self._port = broker.port
        self._topic, self._other = scene.topic(), scene.topic()
        self._group, self._waiting = scene.unique("group"), scene.topic(queues=1)
        self._popped = Popped(broker, self._waiting, scene.unique("pops"))
        self._producer = scene.producer()
        self._transactions = TransactionProducer(jvm, scene.unique("ends"), scene.namesrv)
        scene.push_consumer(self._topic, self._group)

    def go_on(self) -> None:
        """One round."""
        (sent, *_) = self._producer.send([message(self._topic, "x" * 2_000) for _ in range(20)])
        ends = ("commit", "rollback", "unknown")
        self._transactions.send([transactional(self._other, end, end) for end in ends])
        fields = {
            "offset": str(int(sent["offset_msg_id"][16:], 16)),
            "group": self._group,
            "delayLevel": "-1",
            "originTopic": self._topic,
        }
        answer, _ = probe.request(self._port, SEND_MSG_BACK, fields)
        assert answer["code"] == 0, answer
        waits = {"TIMER_DELAY_MS": "2000"}
        self._producer.send([message(self._waiting, "later", own=waits)])
        for taken in self._popped.take(invisibleTime=2_000)[::2]:
            self._popped.ack_taken(taken)

    def close(self) -> None:
        self._transactions.stop()
        self.scene.close()


def panels() -> dict[str, list[str]]:
    """The expressions of each panel by its title, with everything chosen."""
    board: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return {
        panel["title"]: [
            re.sub(r"\$(cluster|broker|job)", ".*", target["expr"]).replace(
                "$__rate_interval", RATE_INTERVAL
            )
            for target in panel["targets"]
        ]
        for panel in board["panels"]
        if panel["type"] != "row"
    }


@pytest.mark.timeout(400)
def test_each_panel_has_data(first_jvm: ClientJvm, watched: tuple[Broker, Prometheus]) -> None:
    broker, prometheus = watched
    expressions = [each for its in panels().values() for each in its]
    assert len(expressions) >= 30
    load = Load(first_jvm, broker)
    empty: list[str] = []

    def all_have_data() -> bool:
        load.go_on()
        empty[:] = [
            each
            for each in expressions
            if not any(series.is_finite for series in prometheus.query(each, SECONDS))
        ]
        return not empty

    try:
        poll(all_have_data, "each panel has data", 240)
    except AssertionError as error:
        raise AssertionError(f"{error}: {empty}; targets: {prometheus.targets()}") from None
    finally:
        load.close()


def test_what_can_be_chosen_is_there(watched: tuple[Broker, Prometheus]) -> None:
    """The variables of the dashboard: of all that Prometheus watches only what is ours."""
    _, prometheus = watched

    def are_scraped() -> bool:
        return len(prometheus.label_values("job", "process_cpu_seconds_total")) == 3

    poll(are_scraped, "name server, broker and Prometheus are scraped", 60)
    board: dict[str, Any] = json.loads(DASHBOARD.read_text())
    queries = [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    chosen: dict[str, list[str]] = {}
    for query in queries:
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert match is not None
        of, name = match.groups()
        chosen[name] = prometheus.label_values(name, of.replace("$cluster", ".*"))
    assert chosen == {
        "cluster": ["DefaultCluster"],
        "node_id": ["broker-d"],
        "job": ["broker", "namesrv"],
    }


def fields_that_grafana_lacks(dashboard: Path) -> list[str]:
    try:
        python = install(GRAFANA)
    except PythonClientUnavailable as error:
        pytest.skip(f"there is no {GRAFANA}: {error}")
    command = [str(python), str(FIELDS), str(dashboard)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[str] = json.loads(done.stdout)
    return found


def test_grafana_knows_each_field(tmp_path: Path) -> None:
    assert fields_that_grafana_lacks(DASHBOARD) == []
    misspelt = tmp_path / "misspelt.json"
    misspelt.write_text(DASHBOARD.read_text().replace('"legendFormat"', '"legend"', 1))
    assert fields_that_grafana_lacks(misspelt) == ["/panels/1/targets/0/legend"]
