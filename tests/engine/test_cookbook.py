# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in README.md and in the guide, cookbook and ingest pages of docs runs.

And it does what the page says. Blocks that begin with the name of a test module run elsewhere, and
so do those for the package `rocketmq` (compat_tests).
"""

from __future__ import annotations

import base64
import io
import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import SparkSession

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.testing.server import Server

DOCS = Path(__file__).parent.parent.parent / "docs"
BLOCK = re.compile(
    r"^## (?P<title>[^\n]*)$|^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
ORDERS = 40


EVERYTHING = ORDERS + 1 + 3 * 6 + 9 + 3
"""Messages that consumers see."""
REGISTERED = 6
"""Messages of each of three topics whose bodies have the id of a schema in front."""
AVRO = {
    "type": "record", "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "price", "type": "double"}],
}  # fmt: skip


def _protobuf() -> descriptor_pb2.FileDescriptorProto:
    """A file whose first message is another one, and whose second one has Order in it."""
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", syntax="proto3")
    file.message_type.add(name="Other")
    order = file.message_type.add(name="Shop").nested_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="price", number=2, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_OPTIONAL)
    return file


SCHEMAS = {
    "/schemas/ids/1": "{}",
    "/schemas/ids/2": json.dumps(AVRO),
    "/schemas/ids/3?format=serialized": base64.b64encode(_protobuf().SerializeToString()).decode(),
}


class _Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": SCHEMAS[self.path]}).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the parent's name
        """Says nothing."""


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """A registry of schemas; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _registered() -> Iterator[Draft]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_protobuf())
    order_class = message_factory.GetMessageClass(pool.FindMessageTypeByName("Shop.Order"))
    for number in range(REGISTERED):
        order = {"id": number, "price": number / 4}
        avro = io.BytesIO()
        fastavro.schemaless_writer(avro, AVRO, order)
        payloads = {
            "Json": (1, json.dumps(order).encode()),
            "Avro": (2, avro.getvalue()),
            "Protobuf": (3, b"\x04\x02\x00" + order_class(**order).SerializeToString()),
        }
        for kind, (schema_id, payload) in payloads.items():
            yield Draft(f"Registered{kind}", body=b"\x00" + schema_id.to_bytes(4, "big") + payload)


def _row(number: int, name: str, quantity: int) -> dict[str, Any]:
    return {"id": number, "name": name, "quantity": quantity}


def _debezium(op: str, before: Any, after: Any) -> Draft:
    change = {"payload": {"op": op, "before": before, "after": after, "ts_ms": 1}}
    return Draft("Inventory", body=json.dumps(change).encode())


def _canal(kind: str, *rows: dict[str, Any], ddl: bool = False) -> Draft:
    data = [{name: str(value) for name, value in row.items()} for row in rows]
    flat = {"type": kind, "isDdl": ddl, "data": data or None, "database": "shop", "pkNames": ["id"]}
    return Draft("Stock", body=json.dumps(flat).encode())


def _changes() -> list[Draft]:
    nail, screw, bolt = _row(1, "nail", 5), _row(2, "screw", 7), _row(3, "bolt", 1)
    return [
        _debezium("r", None, nail), _debezium("c", None, screw), _debezium("c", None, bolt),
        _debezium("u", nail, {**nail, "quantity": 4}), _debezium("d", bolt, None),
        _canal("CREATE", ddl=True), _canal("INSERT", nail, screw, bolt),
        _canal("UPDATE", {**nail, "quantity": 3}, {**nail, "quantity": 4}), _canal("DELETE", bolt),
    ]  # fmt: skip


def _dead_letters() -> list[Draft]:
    return [
        Draft(
            "%DLQ%billing", body=b"dead %d" % number, reconsume_times=16,
            properties={
                "KEYS": f"dead-{number}", "TAGS": "paid", "RETRY_TOPIC": "Redo", "color": "blue",
                "UNIQ_KEY": f"{number:032X}", "DLQ_ORIGIN_TOPIC": "Redo",
            },
        )
        for number in range(3)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders with JSON bodies, a half message, some of another topic, a group that is behind."""
    path = tmp_path_factory.mktemp("cookbook") / "broker-a"
    writer = StoreWriter(path)
    for number in range(ORDERS):
        writer.put(
            Draft(
                topic="Orders",
                queue_id=number % 4,
                body=json.dumps({"id": number, "price": number / 4}).encode(),
                properties={
                    "KEYS": f"order-{number}",
                    "TAGS": "paid" if number % 2 else "created",
                    "UNIQ_KEY": f"{number % (ORDERS - 1):032X}",
                    "region": "north",
                },
            )
        )
    writer.put(Draft(topic="Other", body=b"else"))
    writer.put(
        Draft(topic="Other", sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE, body=b"half")
    )
    writer.put_all([*_registered(), *_changes(), *_dead_letters()])
    writer.close()
    writer.write_config(offsets={"Orders@billing": {0: 1, 1: 2, 2: 3, 3: 4}})
    return path


def _run(
    page: str, store: Path, namesrv_addr: str, registry: str = ""
) -> dict[str, dict[str, Any]]:
    """Runs the blocks of a page one after the other; the names that each section's blocks made."""
    text = (DOCS / page).read_text("utf-8")
    text = text.replace("/data/rocketmq/store", str(store)).replace("127.0.0.1:9876", namesrv_addr)
    text = text.replace("127.0.0.1:8081", registry)
    names: dict[str, Any] = {"__name__": "__main__"}
    sections: dict[str, dict[str, Any]] = {}
    title = ""
    for found in BLOCK.finditer(text):
        if found["title"]:
            title = found["title"]
            continue
        if found["code"].startswith("# test_") or "from rocketmq.client " in found["code"]:
            continue
        try:
            exec(compile(found["code"], f"{page}: {title}", "exec"), names)  # noqa: S102 - ours
        except Exception as error:
            raise AssertionError(f"{page}, {title}: {error}") from error
        sections[title] = dict(names)
    return sections


def test_the_cookbook(
    spark: SparkSession,
    store: Path,
    rocketmq: Server,
    registry: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sections = _run("spark_cookbook.md", store, rocketmq.namesrv_addr, registry)
    _check_recipes_of_bodies(sections)
    _check_dead_letters(spark, rocketmq)
    _check_lag(spark, store, sections["How far streams are behind"])
    assert sections["Coming from rocketmq-spark"]["old"].count() == 100
    assert sections["Bodies that are JSON"]["orders"].count() == ORDERS
    assert [row["queueId"] for row in sections["One message by its key"]["found"].collect()] == [3]
    assert {row["lag"] for row in sections["Who is behind"]["lag"].collect()} >= {9}
    assert sections["A damaged store"]["whole"].count() == EVERYTHING
    assert sections["Reading from a cluster"]["events"].count() == 100
    shown = capsys.readouterr().out
    assert f"{EVERYTHING} messages are whole" in shown
    assert re.search(rf"north\W+{ORDERS}\b", shown)
    assert "prepared" in shown
    audit = spark.read.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    assert audit.option("topic", "Audit").load().count() == ORDERS


def _check_recipes_of_bodies(sections: dict[str, dict[str, Any]]) -> None:
    orders = [(number, number / 4) for number in range(REGISTERED)]
    for kind in ("JSON", "Avro", "Protobuf"):
        names = sections[f"{kind} behind the id of a schema"]
        rows = names[f"{kind.lower()}_orders"].collect()
        assert sorted(map(tuple, rows)) == orders, kind
    merged = [_row(1, "nail", 4), _row(2, "screw", 7)]
    for title, path in (("Debezium", "inventory"), ("Canal", "stock")):
        names = sections[f"Changes from {title}, merged into a Delta table"]
        table = DeltaTable(names[path]).to_pyarrow_table()
        assert table.sort_by("id").to_pylist() == merged, title


def _check_dead_letters(spark: SparkSession, rocketmq: Server) -> None:
    live = spark.read.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    (row,) = live.option("topic", "Redo").load().collect()
    assert (bytes(row.body), row.tags, row.keys) == (b"dead 1", "paid", "dead-1")
    assert row.properties["color"] == "blue"
    assert "DLQ_ORIGIN_TOPIC" not in row.properties


def _check_lag(spark: SparkSession, store: Path, names: dict[str, Any]) -> None:
    """The listener gets what Spark says of a stream in use; then it is taken away again."""
    stream = spark.readStream.format("rocketmq").option("storePath", str(store))
    stream = stream.option("startingOffsets", "earliest").option("maxBytesPerTrigger", "1k")
    query = stream.option("columns", "topic").load().writeStream.format("noop")
    running = query.queryName("watched").trigger(processingTime="0 seconds").start()
    try:
        end_s = time.monotonic() + 60
        while "watched" not in _text_of(names["metrics"]) and time.monotonic() < end_s:
            time.sleep(0.1)
        assert 'lag_bytes{broker="DefaultCluster/broker-a",query="watched"' in _text_of(
            names["metrics"]
        )
    finally:
        running.stop()
        spark.streams.removeListener(names["listener"])


def _text_of(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def test_the_guide(spark: SparkSession, store: Path, rocketmq: Server) -> None:
    sections = _run("spark.md", store, rocketmq.namesrv_addr)
    assert sections["First steps"]["orders"].count() == ORDERS
    assert sections["Streams"]["live"].isStreaming
    copies = spark.read.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    assert copies.option("topic", "Copies").load().count() == ORDERS


def test_the_readme(
    spark: SparkSession, store: Path, rocketmq: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    _run("../README.md", store, rocketmq.namesrv_addr)
    assert re.search(rf"paid\W+{ORDERS // 2}\b", capsys.readouterr().out)
