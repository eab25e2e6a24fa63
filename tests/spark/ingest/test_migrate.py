# SPDX-License-Identifier: Apache-2.0
"""Tables of earlier versions, as those wrote them: files by partition, manifests, a quarantine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.spark.ingest.tables import (
    SETTINGS,
    job_of,
    keys,
    keys_of,
    put_some,
    quarantined,
    run,
    store_of,
)
from tests.spark.ingest.tables import rows as rows_of
from tests.spark.stores import StoreWriter
from txrocketmq.spark.decode import BadRecord
from txrocketmq.spark.errors import TableError
from txrocketmq.spark.fingerprint import fingerprint
from txrocketmq.spark.ingest import migrate as module
from txrocketmq.spark.ingest.migrate import migrate
from txrocketmq.spark.ingest.table import Table
from txrocketmq.spark.quarantine import rows
from txrocketmq.spark.store import Store


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def old(store: StoreWriter, tmp_path: Path) -> Path:
    """Of the store: one run that was committed, and a file of one that was not."""
    folder = tmp_path / "old"
    run([store.root], tmp_path / "new")
    parts: list[dict[str, Any]] = []
    columns = [name for name in SETTINGS.columns if name != "topic"]
    new = DeltaTable(tmp_path / "new").to_pyarrow_table()
    for topic in ("Orders", "Payments", "%RETRY%group"):
        chosen = new.filter(pa.compute.equal(new["topic"], topic))
        day = chosen["dt"][0].as_py().isoformat()
        escaped = topic.replace("%", "%25")
        path = f"topic={escaped}/dt={day}/part-broker-a-{0:020d}-{store.end:020d}.parquet"
        (folder / path).parent.mkdir(parents=True)
        pq.write_table(chosen.select(columns), folder / path)
        parts.append({
            "path": path, "rows": len(chosen), "size_bytes": (folder / path).stat().st_size,
            "broker_name": "broker-a", "partition": {"topic": topic, "dt": day}, "first_ms": 0,
            "last_ms": 0,
        })  # fmt: skip
    (folder / "topic=Orders" / "part-killed.parquet").write_bytes(b"half of it")
    opened = Store.open(str(store.root), broker_name="broker-a")
    commit = {
        "v": 1, "run": 1, "plan_id": "x", "committed_ms": 99, "parts": parts, "rows": 60,
        "positions": {
            "broker-a": {"next": store.end, "fingerprint": fingerprint(opened, store.end)}
        },
        "starts": {"broker-a": 0}, "records": 60, "log_bytes": store.end, "topics": {},
        "quarantined": {}, "lost": [{"broker_name": "broker-a", "start": 7, "end": 9}],
        "total_rows": 60, "total_parts": 3,
    }  # fmt: skip
    settings = {
        "v": 1, "columns": SETTINGS.columns, "partition_by": SETTINGS.partition_by,
        "source": SETTINGS.source,
    }  # fmt: skip
    for name, document in (("_manifest/0000000001", commit), ("_ingest/table", settings)):
        path = f"{name}.json"
        (folder / path).parent.mkdir()
        (folder / path).write_text(json.dumps(document), "utf-8")
    bad = rows("broker-a", [("file", BadRecord(3, 2, "crc", "why", b"x"))])
    (folder / "_quarantine").mkdir()
    name = f"part-broker-a-{0:020d}-{store.end:020d}.parquet"
    pq.write_table(pa.Table.from_batches([bad]), folder / "_quarantine" / name)
    return folder


def test_what_was_committed_is_the_table_and_the_next_run_goes_on(
    store: StoreWriter, old: Path
) -> None:
    with pytest.raises(TableError, match=r"txrocketmq ingest --migrate --out .*old"):
        run([store.root], old)
    done = migrate(str(old))
    assert (done.files, done.rows) == (3, 60)
    assert keys(old) == keys_of(store)
    assert sorted((row["physicalOffset"], row["reason"]) for row in quarantined(old)) == [
        (3, "crc"), (7, "gone"),
    ]  # fmt: skip
    assert {row["dt"].year for row in rows_of(old)} == {2025}
    assert not (old / "_ingest").exists()
    assert not (old / "_manifest").exists()
    put_some(store, 20)
    (commit,) = run([store.root], old)
    assert commit.rows == 20
    assert keys(old) == keys_of(store)
    DeltaTable(old).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not (old / "topic=Orders" / "part-killed.parquet").exists()
    assert keys(old) == keys_of(store)
    with pytest.raises(TableError, match="nothing to migrate"):
        migrate(str(old))


@pytest.mark.parametrize("step", ["create", "expect", "quarantine", "commit", "delete_ledger"])
def test_a_migration_that_was_interrupted_is_done_again(
    store: StoreWriter, old: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patch:

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        owner: Any = module._Folder if step == "delete_ledger" else Table
        patch.setattr(owner, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            migrate(str(old))
    with pytest.raises(TableError, match="--migrate"):
        job_of([store.root], old).dry_run()
    migrate(str(old))
    assert keys(old) == keys_of(store)
    assert len(quarantined(old)) == 2


def test_a_ledger_that_is_damaged_is_left_alone(old: Path) -> None:
    (old / "_manifest" / "0000000001.json").write_text("{")
    with pytest.raises(TableError, match="its ledger is damaged"):
        migrate(str(old))
    assert not (old / "_delta_log").exists()
