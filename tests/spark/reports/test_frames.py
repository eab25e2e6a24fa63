# SPDX-License-Identifier: Apache-2.0
"""What is read for which reports. That the frames are right is in test_duck.py."""

from __future__ import annotations

import pytest

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.reports import catalog, space
from txrocketmq.spark.reports.frames import FRAMES, asked, check, columns_of, messages_sql
from txrocketmq.spark.reports.report import Report


def _loaded(reports: list[Report], **options: str) -> list[dict[str, str]]:
    given = {"storePath": "/s", **options}
    check(given)
    return sorted(asked(given, reports).values(), key=str)


def test_records_are_read_once_with_the_columns_that_the_reports_need() -> None:
    loaded = _loaded([catalog.TOPICS, space.DISK, catalog.OVERVIEW])
    assert loaded == [
        {"storePath": "/s", "table": "topics"},
        {
            "storePath": "/s",
            "view": "physical",
            "columns": "topic,queueId,brokerName,storeTimestamp,storeSize,bodySize,sysFlag,cluster",
        },
    ]


def test_light_queues_are_refused() -> None:
    with pytest.raises(
        OptionError, match="%LMQ%a is a light queue, and reports count each message"
    ):
        check({"storePath": "/s", "topic": "Orders,%LMQ%a"})


def test_bodies_and_properties_are_never_kept() -> None:
    assert not {"body", "properties"} & set(columns_of(catalog.REPORTS))


def test_tables_come_without_options_of_messages() -> None:
    given = {"startingTimestamp": "0", "brokerName": "b"}
    loaded = _loaded([catalog.RETRIES, catalog.SCHEDULED], **given)
    assert {"storePath": "/s", "brokerName": "b", **FRAMES["offsets"]} in loaded
    assert {"storePath": "/s", "brokerName": "b", "table": "delay"} in loaded
    assert [each["startingTimestamp"] for each in loaded if "view" in each] == ["0"]


def test_lag_reads_no_log() -> None:
    assert _loaded([catalog.LAG]) == [{"storePath": "/s", **FRAMES["offsets"]}]


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


def test_system_topics_are_messages_when_they_are_named() -> None:
    assert "SCHEDULE_TOPIC_XXXX" in messages_sql({"storePath": "/s", "topicPattern": ".*"})
    assert "SCHEDULE_TOPIC_XXXX" not in messages_sql({"topic": "SCHEDULE_TOPIC_XXXX"})
