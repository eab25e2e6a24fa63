# SPDX-License-Identifier: Apache-2.0
"""What planning asks of a store in a bucket: requests and bytes, counted at the server.

A store of 64 MiB has 160 queues, each in a file made at full size. No engine is needed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from pyspark.sql.datasource import InputPartition
from werkzeug.serving import make_server

from tests.spark.stores import START_MS, Draft, StoreWriter
from txrocketmq.spark.batch import StoreReader
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.log import log_end
from txrocketmq.spark.options.options import SourceOptions

TOPICS, QUEUES, MESSAGES = 20, 8, 8000
LEAST_BYTES = 4 << 20
REQUESTS = 60
"""However many queues: the root, the folders, topics.json, both ends of the log."""


class Server:
    """S3 on the loopback address that counts what it is asked for and what it gives."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.bytes = 0
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def _serve(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        kind = environ["REQUEST_METHOD"]
        if "list-type" in environ.get("QUERY_STRING", ""):
            kind = "LIST"

        def started(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            if kind == "GET":
                self.bytes += int(dict(headers).get("Content-Length", 0))
            return start_response(status, headers, *more)

        self.requests[kind] += 1
        return self._app(environ, started)  # type: ignore[no-any-return]

    def uri(self, path: str) -> str:
        """The address of a path in the bucket."""
        options = f"endpoint_override=127.0.0.1:{self._server.port}&scheme=http&region=us-east-1"
        return f"s3://key:secret@planned/{path}?{options}&allow_bucket_creation=true"

    def forget(self) -> None:
        """Counts from here on."""
        self.requests.clear()
        self.bytes = 0

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    fs.FileSystem.from_uri(server.uri(""))[0].create_dir("planned")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def writer(server: Server, tmp_path_factory: pytest.TempPathFactory) -> StoreWriter:
    """Topic0 has half of the messages, the first topics ended early."""
    root = tmp_path_factory.mktemp("stores") / "broker-a"
    writer = StoreWriter(root, segment_bytes=16 << 20, queue_units=30_000)
    for number in range(MESSAGES):
        topic = 0 if number % 2 else number // 16 % TOPICS
        if 0 < topic < 15 and number > MESSAGES // 2:
            topic = 19
        writer.put(Draft(f"Topic{topic}", number // 2 % QUEUES, bytes([number % 251]) * 8000))
    writer.write_config()
    target, path = fs.FileSystem.from_uri(server.uri("broker-a"))
    fs.copy_files(str(root), path, fs.LocalFileSystem(), target)
    return writer


QUERIES: tuple[tuple[dict[str, str], int], ...] = (
    ({}, 0),
    ({"topic": "Topic3"}, 8),
    ({"topic": "Topic0"}, 8),
    ({"topicPattern": "Topic1.*"}, 88),
    ({"subExpression": "A"}, 160),
    ({"where": "topic = 'Topic3'"}, 8),
    ({"where": "tags = 'A'"}, 160),
    ({"clockStepMs": "0", "where": "storeTimestamp > 0"}, 0),
    ({"startingTimestamp": str(START_MS + 5000)}, 0),
    ({"topic": "Topic3", "startingTimestamp": str(START_MS + 500)}, 8),
    ({"topic": "Topic3", "startingOffsets": '{"Topic3": {"broker-a": {"1": 5, "2": -1}}}'}, 8),
    ({"topic": "Topic0", "endingOffsets": '{"Topic0": {"broker-a": {"1": 5}}}'}, 8),
    ({"maxRecordsPerPartition": "100", "topic": "Topic3"}, 8),
)


@pytest.mark.parametrize(("options", "queues"), QUERIES)
def test_planning_asks_for_little(
    server: Server,
    writer: StoreWriter,
    options: dict[str, str],
    queues: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_end, "_known", {})  # of other tests
    server.forget()
    parsed = SourceOptions.of(
        {"storePath": server.uri("broker-a"), "columns": "topic,physicalOffset", **options}
    )
    reader = StoreReader(parsed, Output.of(parsed))
    partitions = reader.partitions()
    asked = dict(server.requests)
    assert asked["LIST"] <= 12, "one for each folder"
    assert sum(asked.values()) <= REQUESTS + 3 * max(queues, 40), asked
    assert server.bytes <= max(writer.end // 100, LEAST_BYTES)
    if "topic" in options:
        local = SourceOptions.of(
            {"storePath": str(writer.root), "columns": "topic,physicalOffset", **options}
        )
        assert _places(reader, partitions)
        assert _places(reader, partitions) == _places(StoreReader(local, Output.of(local)))


def _places(reader: StoreReader, partitions: list[InputPartition] | None = None) -> list[int]:
    found = reader.partitions() if partitions is None else partitions
    batches = [batch for partition in found for batch in reader.read(partition)]
    return sorted(place for batch in batches for place in batch["physicalOffset"].to_pylist())
