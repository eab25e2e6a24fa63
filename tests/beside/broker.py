# SPDX-License-Identifier: Apache-2.0
"""A large broker, and what others wait for while it is asked.

    python -m tests.beside.broker [--requests 400] [--many 3000] [--only TEXT]

Prints for each kind of request how much of the reactor's time a send waited for, in ms, at most:
with one peer, and with 100.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.beside.asked import all_asked, ends
from tests.beside.fields import BROKER, WIDE, Asked, consumer, property_text, send_fields
from tests.beside.probe import (
    LONGEST_S,
    Asking,
    Running,
    Seen,
    beside,
    frame,
    free_port,
    rows_of,
    running,
)
from tests.beside.report import printed
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData, ProducerData


def write_config(folder: Path, many: int) -> None:
    """Writes the files of a broker with so many topics and groups."""
    config = folder / "store" / "config"
    config.mkdir(parents=True)
    queues = {"T": 1, "M": 1, "M2": 1, "E": 4, "Probe": 1, "W": WIDE}
    queues.update({f"t{number}": 4 for number in range(many)})
    table = {
        name: {"topicName": name, "readQueueNums": count, "writeQueueNums": count, "perm": 6}
        for name, count in queues.items()
    }
    groups = ["G", "crowd", *(f"g{number}" for number in range(many))]
    offsets = {f"t{number}@G": {"0": 1} for number in range(many)}
    offsets.update({f"T@g{number}": {"0": 1} for number in range(many)})
    for name, content in (
        ("topics.json", {"topicConfigTable": table}),
        (
            "subscriptionGroup.json",
            {"subscriptionGroupTable": {g: {"groupName": g} for g in groups}},
        ),
        ("consumerOffset.json", {"offsetTable": offsets}),
    ):
        (config / name).write_text(json.dumps(content))


def fill(port: int, many: int) -> Asked:
    """Sends messages and heartbeats; returns the ends of transactions that have begun."""
    asking = Asking(port)
    asking.ask_all(
        [
            frame(310, send_fields(310, "T", property_text({"KEYS": "hot", "a": each})), b"x" * 100)
            for each in range(many)
        ]
    )
    asking.ask_all(
        [
            frame(310, send_fields(310, "M", property_text({"KEYS": "same"})), bytes(200_000))
            for each in range(40)
        ]
    )
    asking.ask_all([frame(310, send_fields(310, "W", queue_id=each), b"x") for each in range(WIDE)])
    half = property_text({"TRAN_MSG": "true", "PGROUP": "p"})
    begun = asking.ask_all(
        [
            frame(310, send_fields(310, "W", half, sys_flag=4), b"x")
            for each in range(min(many, 2_000))
        ]
    )
    groups = [f"g{number}" for number in range(0, many, 10)]
    asking.ask(frame(34, {}, HeartbeatData(
        client_id="c", producer_data_set=[ProducerData(group_name="p")],
        consumer_data_set=[consumer(group) for group in groups],
    ).encode()))  # fmt: skip
    asking.close()
    return ends(
        [
            (
                int((it.ext_fields or {})["queueOffset"]),
                int((it.ext_fields or {})["msgId"][16:32], 16),
            )
            for it in begun
        ]
    )


@contextmanager
def large_broker(folder: Path, many: int) -> Iterator[tuple[Running, Asked]]:
    """Runs a name server and a broker that has so many of everything."""
    write_config(folder, many)
    names_port, port = free_port(), free_port()
    names = {
        "listenPort": names_port,
        "kvConfigPath": folder / "kv.json",
        "configStorePath": folder / "n.properties",
    }
    settings = {
        "listenPort": port, "brokerIP1": "127.0.0.1", "brokerName": BROKER,
        "namesrvAddr": f"127.0.0.1:{names_port}", "storePathRootDir": folder / "store",
        "mappedFileSizeCommitLog": 64 << 20, "mappedFileSizeConsumeQueue": 20 * 20_000,
        "maxHashSlotNum": 100_000, "maxIndexNum": 400_000, "enablePropertyFilter": "true",
        "enableLmq": "true", "enableMultiDispatch": "true", "timerPrecisionMs": 1000,
        "diskSpaceWarningLevelRatio": 99,
    }  # fmt: skip
    with (
        running("txrocketmq.namesrv", folder, names),
        running("txrocketmq.broker", folder, settings) as broker,
    ):
        yield broker, fill(port, many)


def measure(server: Running, requests: int, asked: Asked, peers: int) -> Seen:
    """Pipelines so many requests by so many peers."""
    fields = send_fields(310, "Probe")
    rows = rows_of(asked, requests, peers)
    return beside(server, lambda: frame(310, fields, b"p"), rows, 2 if asked.late else LONGEST_S)


def main() -> None:
    """Measures all, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--many", type=int, default=3_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        large_broker(Path(name), options.many) as (broker, its_ends),
    ):
        for asked in (its_ends, *all_asked()):
            if options.only in asked.name:
                printed(asked, partial(measure, broker, options.requests))


if __name__ == "__main__":
    main()
