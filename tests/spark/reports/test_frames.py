# SPDX-License-Identifier: Apache-2.0
"""What is read for which reports. That the frames are right is in tests/engine/test_reports.py."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.options import SourceOptions, Use
from txrocketmq.spark.reports import catalog
from txrocketmq.spark.reports.frames import FRAMES, VIEW_PREFIX, columns_of, frames
from txrocketmq.spark.reports.report import Report


class Reader:
    """Stands for `spark.read`, and for the DataFrame that it loads: notes what is asked for."""

    def __init__(self) -> None:
        self.loaded: list[dict[str, str]] = []
        self.kept = 0
        self.seen: set[str] = set()

    @property
    def read(self) -> Reader:
        return self

    def format(self, name: str) -> Reader:
        assert name == "rocketmq"
        return self

    def options(self, **options: str) -> Reader:
        self.loaded.append(options)
        return self

    def load(self) -> Reader:
        return self

    def persist(self) -> Reader:
        self.kept += 1
        return self

    def unpersist(self) -> None:
        self.kept -= 1

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's
        self.seen.add(name)

    @property
    def catalog(self) -> Reader:
        return self

    def dropTempView(self, name: str) -> None:  # noqa: N802 - Spark's
        self.seen.remove(name)

    def __getattr__(self, name: str) -> Any:
        """Any column, and any function of it."""
        return lambda *_: self if name == "where" else Column

    topic = sysFlag = property(lambda self: Column())  # noqa: N815 - a column


class Column:
    """Any expression."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def __or__(self, other: object) -> Column:
        return self

    def __invert__(self) -> Column:
        return self

    def __eq__(self, other: object) -> Any:
        return self

    __hash__ = None  # type: ignore[assignment]  # as of pyspark's columns


def _loaded(reports: list[Report], **options: str) -> list[dict[str, str]]:
    reader = Reader()
    with frames(reader, {"storePath": "/s", **options}, reports) as made:  # type: ignore[arg-type]
        assert set(made) >= set[str]().union(*(report.frames for report in reports))
        assert reader.kept == len(reader.loaded)
        assert reader.seen == {VIEW_PREFIX + name for name in made}
    assert reader.kept == 0
    assert not reader.seen
    return sorted(reader.loaded, key=str)


def test_records_are_read_once_with_the_columns_that_the_reports_need() -> None:
    loaded = _loaded([catalog.TOPICS, catalog.DISK, catalog.OVERVIEW])
    assert loaded == [
        {
            "storePath": "/s",
            "view": "physical",
            "columns": "topic,queueId,brokerName,storeTimestamp,storeSize,bodySize,sysFlag",
        }
    ]


def test_bodies_and_properties_are_never_kept() -> None:
    assert not {"body", "properties"} & set(columns_of(catalog.REPORTS))


def test_tables_come_without_options_of_messages() -> None:
    given = {"startingTimestamp": "0", "brokerName": "b"}
    loaded = _loaded([catalog.RETRIES, catalog.SCHEDULED], **given)
    assert {"storePath": "/s", "brokerName": "b", "table": "offsets"} in loaded
    assert {"storePath": "/s", "brokerName": "b", "table": "delay"} in loaded
    assert [each["startingTimestamp"] for each in loaded if "view" in each] == ["0"]


def test_lag_reads_no_log() -> None:
    assert _loaded([catalog.LAG]) == [{"storePath": "/s", "table": "offsets"}]


def test_topics_that_are_chosen_stay_chosen() -> None:
    (all_dead,) = _loaded([catalog.DEAD_LETTERS])
    (chosen,) = _loaded([catalog.DEAD_LETTERS], topic="%DLQ%g")
    assert all_dead.pop("topicPattern") == "%DLQ%.*"
    assert chosen.pop("topic") == "%DLQ%g"
    assert all_dead == chosen


@pytest.mark.parametrize("name", ["columns", "VIEW", "table", "nameServer", "kafkaNames"])
def test_options_that_reports_set_themselves_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=name):
        _loaded([catalog.TOPICS], **{name: "x"})


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_is_made_of_options_that_exist(name: str) -> None:
    options = SourceOptions.of({"storePath": "/s", **FRAMES[name]})
    use = options.use(stream=False)
    assert use == (Use.TABLE if "table" in FRAMES[name] else Use.STORE_BATCH)
    options.check(use)
