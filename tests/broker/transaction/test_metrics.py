# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest

from txrocketmq.broker.transaction.metrics import TransactionMetrics
from txrocketmq.broker.work.json_file import JsonFile, JsonFileError

NOW_MS = 1_700_000_000_000


def metrics(folder: Path) -> TransactionMetrics:
    made = TransactionMetrics(JsonFile(folder / "transactionMetrics"), lambda: NOW_MS)
    made.load()
    return made


def test_it_is_kept_in_the_form_of_the_original(tmp_path: Path) -> None:
    first = metrics(tmp_path)
    for topic, number in (("T", 1), ("T", 1), ("U", 1), ("U", -1), ("", 1)):
        first.add(topic, number)
    first.saving.write_now()
    text = (tmp_path / "transactionMetrics").read_text()
    assert "\n" not in text
    assert json.loads(text)["transactionCount"] == {
        "T": {"count": 2, "timeStamp": NOW_MS},
        "U": {"count": 0, "timeStamp": NOW_MS},
    }
    second = metrics(tmp_path)
    assert [second.count(topic) for topic in ("T", "U", "V", "")] == [2, 0, 0, 0]
    assert second.data_version == first.data_version


def test_a_file_that_is_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "transactionMetrics").write_text('{"transactionCount":{"T":{}}}')
    with pytest.raises(JsonFileError, match="open half messages are counted from 0"):
        metrics(tmp_path)


def test_ends_are_counted_and_not_kept(tmp_path: Path) -> None:
    made = metrics(tmp_path)
    for _ in range(4):
        made.add("T", 1)
    made.ended("T", [4], 5_000, is_committed=True)
    made.ended("T", [61], 62_000, is_committed=True)
    made.ended("T", [0], 1, is_committed=False)
    made.ended("", [0], 1, is_committed=True)
    assert made.counts() == {"T": 1}
    (ends,) = made.ends.values()
    assert (ends.committed, ends.rolled_back) == (2, 1)
    assert ends.ages_s.buckets()[:3] == [("5.0", 1), ("60.0", 1), ("600.0", 2)]
