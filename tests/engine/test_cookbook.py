# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in README.md and in the guide, cookbook and ingest pages of docs runs.

And it does what the page says. Blocks that begin with the name of a test module run elsewhere, and
so do those for the package `rocketmq` (compat_tests).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.testing.server import Server

DOCS = Path(__file__).parent.parent.parent / "docs"
BLOCK = re.compile(
    r"^## (?P<title>[^\n]*)$|^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
ORDERS = 40


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
    writer.close()
    writer.write_config(offsets={"Orders@billing": {0: 1, 1: 2, 2: 3, 3: 4}})
    return path


def _run(page: str, store: Path, namesrv_addr: str) -> dict[str, dict[str, Any]]:
    """Runs the blocks of a page one after the other; the names that each section's blocks made."""
    text = (DOCS / page).read_text("utf-8")
    text = text.replace("/data/rocketmq/store", str(store)).replace("127.0.0.1:9876", namesrv_addr)
    names: dict[str, Any] = {}
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
    spark: SparkSession, store: Path, rocketmq: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = _run("spark_cookbook.md", store, rocketmq.namesrv_addr)
    assert sections["Bodies that are JSON"]["orders"].count() == ORDERS
    assert [row["queueId"] for row in sections["One message by its key"]["found"].collect()] == [3]
    assert {row["lag"] for row in sections["Who is behind"]["lag"].collect()} >= {9}
    assert sections["A damaged store"]["whole"].count() == ORDERS + 1
    assert sections["Reading from a cluster"]["events"].count() == 100
    shown = capsys.readouterr().out
    assert f"{ORDERS + 1} messages are whole" in shown
    assert re.search(rf"north\W+{ORDERS}\b", shown)
    assert "prepared" in shown
    audit = spark.read.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    assert audit.option("topic", "Audit").load().count() == ORDERS


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
