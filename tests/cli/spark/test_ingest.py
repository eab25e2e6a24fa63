# SPDX-License-Identifier: Apache-2.0
"""The command line, with tasks in this process; all of it in tests/engine/test_ingest_*.py."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.spark.ingest.stores_and_tables import keys, keys_of, put_some, rows, store_of
from tests.spark.stores import StoreWriter
from txrocketmq.cli.ending import INTERRUPTED
from txrocketmq.cli.spark import ingest
from txrocketmq.spark.arrow.errors import (
    BadRecordError,
    ClusterError,
    DataLossError,
    NotAStore,
    OptionError,
    RunFailed,
    TableBusy,
    TableError,
)
from txrocketmq.spark.ingest.runners.runner import Runner, run_here
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable
from txrocketmq.spark.options.pace import Pace


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often the runner was started; it is none of Spark's."""
    starts: list[str] = []

    @contextmanager
    def runner() -> Iterator[Runner]:
        starts.append("started")
        yield run_here

    monkeypatch.setattr(ingest, "_runner", runner)
    monkeypatch.setattr("os.fsync", lambda handle: None)
    return starts


def run(store: StoreWriter, *more: str) -> int:
    table = store.root.parent / "table"
    return ingest.main(["--store", str(store.root), "--out", str(table), *more])


def test_it_takes_what_is_new(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    table = store.root.parent / "table"
    assert run(store) == ingest.DONE
    assert "version 2: 60 messages of 60 records in 3 files" in capsys.readouterr().err
    assert keys(table) == keys_of(store)
    assert started == ["started"]
    assert run(store) == ingest.DONE
    assert capsys.readouterr().err == "nothing new\n"
    assert started == ["started"]


def test_stores_can_be_named_together_and_one_by_one(
    store: StoreWriter, started: list[str], tmp_path: Path
) -> None:
    others = [store_of(tmp_path / f"broker-{name}", 5) for name in "bcd"]
    first, second, third = (str(each.root) for each in others)
    assert run(store, "--store", first, second, "--store", third) == ingest.DONE
    assert keys(tmp_path / "table") == keys_of(store, *others)


def test_topics_that_no_store_has_are_told(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """They may come, or be misspelt."""
    assert run(store, "--topic", "Orders, Ordres", "--dry-run") == ingest.DONE
    assert capsys.readouterr().err == "no store has a queue of topic Ordres yet\n"
    shutil.rmtree(store.root / "consumequeue")
    assert run(store, "--topic", "Ordres", "--dry-run") == ingest.DONE
    assert capsys.readouterr().err == ""


def test_a_dry_run_shows_the_splits(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "--dry-run", "--max-bytes", "4k") == ingest.DONE
    assert (
        capsys.readouterr().out
        == "new: 4,096 bytes in 1 split\n  DefaultCluster/broker-a [0, 4096)\n"
    )
    assert not (store.root.parent / "table").exists()
    run(store, "--quiet")
    assert capsys.readouterr() == ("", "")
    assert run(store, "--dry-run") == ingest.DONE
    assert capsys.readouterr().out == "nothing new\n"
    assert started == ["started"]


def test_verification(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "--verify", "--quiet") == ingest.DONE
    assert capsys.readouterr().out == (
        f"DefaultCluster/broker-a [0, {store.end}): compared with log and consume queues\n"
        "equal: 60 messages in 6 queues\n"
    )
    assert started == ["started"]
    DeltaTable(store.root.parent / "table").delete("""topic = 'Orders' AND "queueOffset" = 3""")
    put_some(store, 10)
    assert run(store, "--verify-only") == ingest.NOT_VERIFIED
    shown = capsys.readouterr().out
    assert (
        "Orders queue 1 of DefaultCluster/broker-a: the table has 9 messages, the log 10\n" in shown
    )
    assert "NOT equal: 58 messages" in shown


def test_metrics_of_runs_that_end_well_and_others(
    store: StoreWriter, started: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "ingest.prom"
    assert run(store, "--metrics", str(path)) == ingest.DONE
    text = path.read_text("utf-8")
    table = str(store.root.parent / "table")
    assert f'txrocketmq_ingest_rows{{table="{table}"}} 60.0\n' in text
    assert (
        f'txrocketmq_ingest_lag_bytes{{broker="DefaultCluster/broker-a",table="{table}"}} 0.0\n'
        in text
    )
    assert run(store, "--metrics", str(path), "--columns", "body") == ingest.WRONG_USAGE
    text = path.read_text("utf-8")
    assert f'txrocketmq_ingest_exit_code{{table="{table}"}} 2.0\n' in text
    assert f'txrocketmq_ingest_version{{table="{table}"}} 2.0\n' in text


def test_metrics_say_what_verification_found(
    store: StoreWriter, started: list[str], tmp_path: Path
) -> None:
    run(store)
    DeltaTable(store.root.parent / "table").delete('"queueOffset" = 3')
    path = tmp_path / "ingest.prom"
    assert run(store, "--verify", "--metrics", str(path)) == ingest.NOT_VERIFIED
    assert 'exit_code{table="' in path.read_text("utf-8")
    assert "} 5.0\n" in path.read_text("utf-8")


def test_a_file_of_metrics_that_cannot_be_is_told_first(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "--metrics", "/nowhere/ingest.prom") == ingest.WRONG_USAGE
    assert (
        "the folder /nowhere, where --metrics is to write, does not exist"
        in capsys.readouterr().err
    )
    assert started == []


def test_a_folder_is_no_file_of_metrics(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "--metrics", str(store.root)) == ingest.WRONG_USAGE
    assert "is a folder: give the name of a file" in capsys.readouterr().err
    assert started == []


def test_a_device_is_no_file_of_metrics(
    store: StoreWriter, started: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "device")
    assert run(store, "--metrics", str(tmp_path / "device")) == ingest.WRONG_USAGE
    assert "device is no file, such as a device" in capsys.readouterr().err
    assert started == []
    assert (tmp_path / "device").is_fifo()


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("file", "file is not a folder"),
        ("file/below", "file is not a folder"),
        ("loop", "loop cannot be used: Too many levels of symbolic links"),
        ("x" * 300, "cannot be used: File name too long"),
        ("a\udc80b", "has bytes that are not UTF-8: choose another name"),
        ("s3://[::1", "option out: s3://[::1 is not a valid URI: Invalid IPv6 URL"),
        ("http://[::1", "option out: http://[::1 is not a valid URI: Invalid IPv6 URL"),
    ],
)
def test_a_place_for_no_table_is_told_in_a_sentence(
    store: StoreWriter,
    started: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    sentence: str,
    table_format: str,
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    out = name if "://" in name else str(tmp_path / name)
    arguments = ["--store", str(store.root), "--out", out, "--format", table_format]
    assert ingest.main(arguments) == ingest.WRONG_USAGE
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith(sentence)
    assert started == []


def test_a_folder_that_takes_no_metrics_is_told_first(
    store: StoreWriter,
    started: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.access", lambda path, _mode: path != tmp_path)
    assert run(store, "--metrics", str(tmp_path / "ingest.prom")) == ingest.WRONG_USAGE
    assert f"the folder {tmp_path} is not writable" in capsys.readouterr().err
    assert started == []


def test_metrics_that_cannot_be_written_hide_nothing(
    store: StoreWriter,
    started: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("txrocketmq.spark.ingest.metrics.write_metrics", full)
    flags = ["--metrics", str(tmp_path / "ingest.prom"), "--quiet"]
    assert run(store, *flags) == ingest.FAILED
    said = "txrocketmq ingest: the metrics could not be written: No space left on device\n"
    assert capsys.readouterr().err == said
    assert keys(tmp_path / "table") == keys_of(store)
    assert run(store, *flags, "--columns", "body") == ingest.WRONG_USAGE
    error = capsys.readouterr().err
    assert said in error
    assert "was made with columns=" in error


def test_a_program_of_spark_submit_starts_its_session_in_any_case(
    store: StoreWriter, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    for _ in range(2):
        assert run(store) == ingest.DONE
    assert started == ["started", "started"]


def test_flags_make_the_table(store: StoreWriter, started: list[str]) -> None:
    flags = [
        "--partition-by", "none", "--columns", "body,properties", "--topic-pattern", "O.*",
        "--view", "physical", "--properties-format", "json", "--keep-compressed", "--check-crc",
        "--split-bytes", "1m",
    ]  # fmt: skip
    assert run(store, *flags) == ingest.DONE
    table = store.root.parent / "table"
    assert {key[0] for key in keys(table)} == {"Orders"}
    made = DeltaLakeTable(str(table)).settings()
    assert made is not None
    assert made.partition_by == ()
    assert list(made.columns) == [
        "topic", "queueId", "queueOffset", "body", "properties", "brokerName", "storeTimestamp",
        "physicalOffset", "storeSize", "cluster",
    ]  # fmt: skip
    assert dict(made.source) == {
        "view": "physical", "propertiesFormat": "json", "topicPattern": "O.*",
        "decompress": "false",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--partition-by", "day"], "option partition-by='day' is not valid; valid: topic,dt"),
        (["--columns", "nothing"], "option columns='nothing' is not valid; valid: topic, "),
        (["--max-bytes", "many"], "option max-bytes='many' is not valid"),
        (["--max-bytes-per-second", "9"], "option max-bytes-per-second='9' is not valid; valid: "),
        (["--view", "sideways"], "option view='sideways' is not valid; valid: logical, physical"),
        (["--topic", "a", "--topic-pattern", "b"], "only one of topic, topicPattern"),
        (["--store", "/nowhere"], "/nowhere"),
        (["--out", "ftp://x/y"], "ftp"),
        (["--out", ""], "option out is empty: name a folder, or a URI"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_done(
    store: StoreWriter,
    started: list[str],
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    said: str,
) -> None:
    assert run(store, *flags) == ingest.WRONG_USAGE
    error = capsys.readouterr().err
    assert error.startswith("txrocketmq ingest: ")
    assert said in error
    assert error.count("\n") == 1
    assert not (store.root.parent / "table").exists()
    assert started == []


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dry-run", "--verify"], "--verify: not allowed with argument --dry-run"),
        (["--verify-only", "--verify"], "--verify: not allowed with argument --verify-only"),
        (["--dry-run", "--metrics", "x"], "argument --metrics: a --dry-run has nothing to measure"),
    ],
)
def test_flags_that_have_no_meaning_together(
    store: StoreWriter, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(store, *flags)
    assert ended.value.code == ingest.WRONG_USAGE
    assert said in capsys.readouterr().err


def test_brokers_of_two_clusters_with_one_name(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = store_of(tmp_path / "west" / "broker-a", 7)
    table = tmp_path / "table"
    assert run(store, "--store", str(other.root)) == ingest.WRONG_USAGE
    assert "name these with the option cluster" in capsys.readouterr().err
    assert run(store, "--store", str(other.root), "--cluster", "east,west,north") == 2
    assert "give one name, or one for each of the 2 stores" in capsys.readouterr().err
    assert run(store, "--store", str(other.root), "--cluster", "east,west", "--verify") == 0
    put_some(other, 5)
    assert run(other, "--out", str(table), "--cluster", "west", "--verify") == ingest.DONE
    assert "east/broker-a: not compared" in capsys.readouterr().out
    found = Counter(row["cluster"] for row in rows(table))
    assert found == {"east": 60, "west": 12}
    assert keys(table) == keys_of(store, other)


def test_an_iceberg_table(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "iceberg"
    more = ("--format", "iceberg", "--out", str(table))
    assert run(store, *more, "--dry-run") == ingest.DONE
    assert not table.exists()
    assert run(store, *more, "--verify") == ingest.DONE
    assert capsys.readouterr().out.endswith("equal: 60 messages in 6 queues\n")
    assert keys(table) == keys_of(store)
    assert run(store, "--out", str(table)) == ingest.WRONG_USAGE
    assert "holds 'catalog.db' and is not a table of" in capsys.readouterr().err
    assert run(store, *more, "--catalog", "type") == ingest.WRONG_USAGE
    assert "option catalog: give NAME=VALUE" in capsys.readouterr().err
    other = ("--catalog", "type=sql", "--catalog", f"uri=sqlite:///{tmp_path}/other.db")
    assert run(store, *more[:3], str(tmp_path / "second"), *other, "--table", "a.b") == ingest.DONE
    assert (tmp_path / "second" / "data").is_dir()
    with pytest.raises(SystemExit):
        run(store, "--catalog", "type=rest")
    assert "--catalog and --table are for --format iceberg" in capsys.readouterr().err


def test_verifying_what_is_no_table_makes_none(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "--verify-only") == ingest.WRONG_USAGE
    assert "has nothing to verify" in capsys.readouterr().err
    assert not (store.root.parent / "table").exists()
    assert started == []


def test_verification_tells_what_it_left_out_and_what_it_could_not_read(
    store: StoreWriter, started: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = store_of(tmp_path / "broker-b", 5)
    run(store, "--store", str(other.root), "--quiet")
    for part in (tmp_path / "table").rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[:-8] + b"oopsoops")
    assert run(store, "--verify-only") == ingest.NOT_VERIFIED
    shown = capsys.readouterr().out
    assert (
        "DefaultCluster/broker-b: not compared, because --store names no store of this broker\n"
        in shown
    )
    assert "table cannot be read: " in shown
    assert "NOT equal" in shown


def test_logs_are_read_as_fast_as_is_allowed(
    store: StoreWriter, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[int | None] = []
    monkeypatch.setattr(Pace, "of", rates.append)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1, 2, 3})
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 0)  # each file by itself
    fast = ["--max-bytes-per-second", "3m", "--quiet"]
    assert run(store, *fast, "--verify") == ingest.DONE
    assert rates == [1 << 20] * 6, "3 files of the log are taken at a time, then held against"
    rates.clear()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    put_some(store, 1)
    assert run(store, *fast) == ingest.DONE
    assert rates == [3 << 20], "each task, on Spark"


def test_nobody_reads_what_verification_found(
    store: StoreWriter, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is what a script asks for."""

    def closed(_found: object) -> None:
        raise BrokenPipeError

    forgotten: list[str] = []
    run(store, "--quiet")
    DeltaTable(store.root.parent / "table").delete('"queueOffset" = 3')
    monkeypatch.setattr(ingest, "show_verification", closed)
    monkeypatch.setattr(ingest, "forget_stdout", lambda: forgotten.append("stdout"))
    assert run(store, "--verify-only") == ingest.NOT_VERIFIED
    assert forgotten == ["stdout"]


def test_a_place_that_may_not_be_written_is_told_in_a_line(
    store: StoreWriter,
    started: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/lake/table")

    monkeypatch.setattr("txrocketmq.spark.ingest.job.IngestJob.run", refused)
    assert run(store, "--quiet") == ingest.FAILED
    said = capsys.readouterr().err
    assert said.startswith("txrocketmq ingest: /lake/table may not be written by this process,")
    assert len(said.splitlines()) == 1


def test_a_store_has_to_be_named(store: StoreWriter, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ingest.main(["--out", str(store.root.parent / "table")])
    assert "the following arguments are required: --store" in capsys.readouterr().err


def test_interrupted(
    store: StoreWriter,
    started: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(_options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(ingest, "_main", interrupt)
    assert run(store) == INTERRUPTED
    assert "the next run continues" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OptionError("x"), 2), (NotAStore("x"), 2), (TableError("x"), 2), (DataLossError("x"), 3),
        (BadRecordError("x"), 4), (TableBusy("x"), 6), (RunFailed("x"), 1), (ClusterError("x"), 1),
        (OSError("x"), 1),
    ],
)  # fmt: skip
def test_exit_codes(error: Exception, code: int) -> None:
    assert ingest.exit_code(error) == code


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ingest.main(["--help"])
    assert "5 --verify found differences" in " ".join(capsys.readouterr().out.split())


def test_many_differences_are_not_all_printed(
    store: StoreWriter,
    started: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_some(store, 60)
    run(store, "--quiet")
    DeltaTable(store.root.parent / "table").delete()
    monkeypatch.setattr(ingest, "_DIFFERENCES_SHOWN", 3)
    assert run(store, "--verify-only", "--quiet") == ingest.NOT_VERIFIED
    assert "and 9 more queues\n" in capsys.readouterr().out
