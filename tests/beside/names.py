# SPDX-License-Identifier: Apache-2.0
"""A large name server, and what others wait for while it is asked.

    python -m tests.beside.names [--requests 400] [--brokers 2000] [--topics 60000] [--only TEXT]

Prints for each kind of request how much of the reactor's time a question for a route waited for, in
ms, at most: with one peer, and with 100.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.beside.fields import Asked, always
from tests.beside.probe import Asking, Running, Seen, beside, frame, free_port, rows_of, running
from tests.beside.report import printed
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    QueueData,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicRouteData,
)

CLUSTER = "c"


def registration(topics: int, counter: int = 1, own: str = "t") -> bytes:
    """The body of a registration with so many topics, and one that all brokers have."""
    names = ["common", *(f"{own}{each}" for each in range(topics))]
    return RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
            topic_config_table={each: TopicConfig(topic_name=each) for each in names},
            data_version=DataVersion(timestamp=1, counter=counter),
        )
    ).encode()


def its_fields(name: str, address: str) -> dict[str, str]:
    """The fields with which a broker registers."""
    return {
        "brokerName": name, "brokerAddr": address, "clusterName": CLUSTER, "haServerAddr": "",
        "brokerId": "0",
    }  # fmt: skip


def _of_tables() -> Iterator[Asked]:
    common, large = {"topic": "common"}, its_fields("large", "10.1.0.1:10911")
    version = DataVersion().encode()
    for code in (106, 206, 304, 311, 312, 313, 319):
        yield Asked(code, "", always({}))
    yield Asked(100, "", lambda i: ({"namespace": "n", "key": f"k{i}", "value": "v"}, b""))
    yield Asked(101, "", always({"namespace": "n", "key": "k1"}))
    yield Asked(219, "", always({"namespace": "n"}))
    yield Asked(102, "", lambda i: ({"namespace": "n", "key": f"k{i}"}, b""))
    yield Asked(318, "", lambda i: ({}, f"scanNotActiveBrokerInterval={5_000 + i}".encode()))
    yield Asked(224, "", always({"cluster": CLUSTER}))
    yield Asked(105, "that all brokers have", always(common))
    yield Asked(105, "", lambda i: ({"topic": f"t{i}"}, b""))
    yield Asked(
        322,
        "",
        always(
            {key: large[key] for key in ("brokerName", "brokerAddr", "clusterName", "brokerId")},
            version,
        ),
    )
    yield Asked(901, "", always({"clusterName": CLUSTER, "brokerName": "large"}))


def _of_brokers(topics: int) -> Iterator[Asked]:
    _common, _large = {"topic": "common"}, its_fields("large", "10.1.0.1:10911")
    yield Asked(
        904,
        "",
        always({"clusterName": CLUSTER, "brokerName": "large", "brokerAddr": "10.1.0.1:10911"}),
    )
    yield Asked(205, "", always({"brokerName": "large"}), 50)
    yield Asked(327, "", always({"brokerName": "large"}), 50)
    yield Asked(
        217,
        "",
        lambda i: (
            {"topic": f"single{i}"},
            TopicRouteData(queue_datas=[QueueData(broker_name="large")]).encode(),
        ),
    )
    yield Asked(216, "", lambda i: ({"topic": f"single{i}"}, b""))
    yield Asked(
        216, "that all brokers have", always({"topic": "common", "clusterName": CLUSTER}), 20
    )
    yield Asked(
        103,
        "of small brokers",
        lambda i: (its_fields(f"s{i}", f"10.2.{i // 250}.{i % 250}:1"), registration(20, own="s")),
    )
    yield Asked(
        104,
        "of small brokers",
        lambda i: (
            {
                key: value
                for key, value in its_fields(f"s{i}", f"10.2.{i // 250}.{i % 250}:1").items()
                if key != "haServerAddr"
            },
            b"",
        ),
    )
    yield Asked(
        103,
        "of a large broker",
        lambda i: (its_fields(f"l{i}", f"10.3.0.{i}:1"), registration(topics // 4, i, own="l")),
        4,
    )
    yield Asked(
        104,
        "of a large broker",
        lambda i: (
            {
                key: value
                for key, value in its_fields(f"l{i}", f"10.3.0.{i}:1").items()
                if key != "haServerAddr"
            },
            b"",
        ),
        4,
    )


def all_asked(topics: int) -> Iterator[Asked]:
    """All that a name server serves."""
    yield from _of_tables()
    yield from _of_brokers(topics)


@contextmanager
def large_name_server(folder: Path, brokers: int, topics: int) -> Iterator[Running]:
    """Runs a name server with so many brokers, one of which has so many topics."""
    port = free_port()
    settings = {
        "listenPort": port, "kvConfigPath": folder / "kv.json",
        "configStorePath": folder / "n.properties", "deleteTopicWithBrokerRegistration": "true",
    }  # fmt: skip
    with running("txrocketmq.namesrv", folder, settings) as server:
        registering = Asking(port)
        small = registration(1, own="b")
        registering.ask(frame(103, its_fields("large", "10.1.0.1:10911"), registration(topics)))
        for each in range(brokers):
            registering.ask(
                frame(103, its_fields(f"b{each}", f"10.0.{each // 250}.{each % 250}:10911"), small)
            )
        yield server
        registering.close()


def measure(server: Running, requests: int, asked: Asked, peers: int) -> Seen:
    """Pipelines so many requests by so many peers."""
    question = frame(105, {"topic": "t1"})
    return beside(server, lambda: question, rows_of(asked, requests, peers))


def main() -> None:
    """Measures all, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--brokers", type=int, default=2_000)
    parser.add_argument("--topics", type=int, default=60_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        large_name_server(Path(name), options.brokers, options.topics) as server,
    ):
        for asked in all_asked(options.topics):
            if options.only in asked.name:
                printed(asked, partial(measure, server, options.requests))


if __name__ == "__main__":
    main()
