# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle

import pytest

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.offsets import EARLIEST
from txrocketmq.spark.options.option import USE_NAMES, Use
from txrocketmq.spark.options.options import SourceOptions, declared_options, of_table

STORE = {"storePath": "/s"}
LIVE = {"nameServer": "ns:9876", "topic": "t"}


def test_names_are_compared_without_case_and_values_are_typed() -> None:
    options = SourceOptions.of(
        {"PATH": "/s", "topic": "a, b,a", "startingoffsets": "earliest", "BatchBytes": "1m"}
    )
    assert options.store_path == "/s"
    assert options.topics == ("a", "b")
    assert options.starting_offsets is not None
    assert options.starting_offsets.everywhere == EARLIEST
    assert options.batch_bytes == 1 << 20
    assert options.fail_on_data_loss
    assert options.given == {"storePath", "topic", "startingOffsets", "batchBytes"}
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301


@pytest.mark.parametrize(
    ("name", "meant"),
    [("topics", "topic"), ("subscribe", "topic"), ("storepaht", "storePath"), ("tags", "subExp")],
)
def test_an_unknown_option_names_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"unknown option {name} .did you mean {meant}"):
        SourceOptions.of({**STORE, name: "x"})
    with pytest.raises(OptionError, match="unknown option zzzzzz; see docs"):
        SourceOptions.of({"zzzzzz": "x"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({**STORE, "nameServer": "n"}, "storePath and nameServer"),
        ({**STORE, "path": "/t"}, "path of load"),
        ({**STORE, "topic": "t", "assign": '{"t": [0]}'}, "only one of assign, topic"),
        (
            {**STORE, "startingTimestamp": "2026-02-02", "endingTimestamp": "2026-02-01"},
            "endingTimestamp is before",
        ),
        (
            {
                **STORE,
                "startingOffsets": '{"log": {"a": 9, "b": 1}}',
                "endingOffsets": '{"log": {"a": 8, "b": 9}}',
            },
            "endingOffsets is before startingOffsets for the log of a: 8 and 9",
        ),
        (
            {
                **STORE,
                "startingOffsets": '{"t": {"a": {"0": 5}}}',
                "endingOffsets": '{"t": {"a": {"0": 4, "1": 0}}}',
            },
            "endingOffsets is before startingOffsets for queue 0 of t on a: 4 and 5",
        ),
        ({**STORE, "topic": "  "}, "option topic is empty"),
        ({**STORE, "minPartitions": "1000000000"}, "minPartitions='1000000000' .* from 1 to"),
        ({**STORE, "table": "lag"}, "table='lag'.*offsets"),
        ({**STORE, "kafkaNames": "true", "propertiesFormat": "raw"}, "kafkaNames"),
    ],
)
def test_what_does_not_go_together(options: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        SourceOptions.of(options)


@pytest.mark.parametrize(
    ("options", "stream", "use"),
    [
        (STORE, False, Use.STORE_BATCH),
        (STORE, True, Use.STORE_STREAM),
        ({**STORE, "table": "queues"}, False, Use.TABLE),
        (LIVE, False, Use.LIVE_BATCH),
        (LIVE, True, Use.LIVE_STREAM),
    ],
)
def test_what_is_done(options: dict[str, str], stream: bool, use: Use) -> None:
    parsed = SourceOptions.of(options)
    assert parsed.use(stream=stream) == use
    parsed.check(use)


def test_a_read_says_of_what() -> None:
    with pytest.raises(OptionError, match="storePath .* or nameServer"):
        SourceOptions.of({"topic": "t"}).use(stream=False)


@pytest.mark.parametrize(
    ("options", "use", "why"),
    [
        ({**STORE, "endingOffsets": "latest"}, Use.STORE_STREAM, "endingOffsets has no meaning"),
        ({**STORE, "maxOffsetsPerTrigger": "5"}, Use.STORE_STREAM, "it is for: stream over a clu"),
        ({**LIVE, "verify": "crc"}, Use.LIVE_BATCH, "verify has no meaning here"),
        ({**STORE, "table": "queues"}, Use.STORE_STREAM, "table has no meaning"),
        ({"nameServer": "n"}, Use.LIVE_BATCH, "topic, topicPattern or assign is needed"),
        ({**LIVE, "commitGroupOffsets": "true"}, Use.LIVE_STREAM, "group is needed"),
        ({**LIVE, "subExpression": "A", "sqlExpression": "a > 5"}, Use.LIVE_BATCH, "choose one"),
        ({**LIVE, "startingOffsets": '{"log": {"a": 1}}'}, Use.LIVE_BATCH, "are for stores"),
        ({**LIVE, "startingOffsets": '{"u": {"a": {"0": 1}}}'}, Use.LIVE_BATCH, "topic u, which"),
        (
            {
                **STORE,
                "assign": '{"t": {"a": [0]}}',
                "startingOffsets": '{"t": {"a": {"0": 1, "1": 2}}}',
            },
            Use.STORE_BATCH,
            "offsets are given for queue 1 of t on a, which assign does not name",
        ),
        ({"topic": "t"}, Use.SINK, "nameServer is needed"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, str], use: Use, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        SourceOptions.of(options).check(use)


def test_what_spark_adds_is_let_through() -> None:
    options = SourceOptions.of({**LIVE, "checkpointLocation": "/c", "queryName": "q"})
    assert options.given == {"nameServer", "topic"}


def test_topics_are_selected_by_name_pattern_or_assignment() -> None:
    assert SourceOptions.of(STORE).selects("anything")
    assert not SourceOptions.of({**STORE, "topic": "t"}).selects("u")
    assert SourceOptions.of({**STORE, "topicPattern": "t.*"}).selects("tu")
    assert not SourceOptions.of({**STORE, "assign": '{"t": [0]}'}).selects("u")


def test_each_option_is_for_something() -> None:
    options = declared_options().values()
    assert len({option.name.lower() for option in options}) == len(options)
    for option in options:
        assert any(use in option.uses for use in USE_NAMES), option.name


def test_options_of_a_permanent_table_among_all_that_spark_says_of_it() -> None:
    told = {
        "storepath": "/s", "option.storepath": "/s", "topic": "t", "option.Topic": "t",
        "provider": "rocketmq", "owner": "root", "comment": "hello", "my.prop": "b",
    }  # fmt: skip
    assert of_table(told) == {"storepath": "/s", "topic": "t"}
    assert SourceOptions.of(told).given == {"storePath", "topic"}
    for name in ("path", "location"):
        assert of_table({"provider": "rocketmq", "owner": "root", name: "file:/s"}) == {
            "path": "file:/s"
        }
    assert of_table({**STORE, "topic": "t"}) is None
    with pytest.raises(OptionError, match="unknown option topics"):
        SourceOptions.of({**told, "option.topics": "t"})


@pytest.mark.parametrize("option", ["secretKey", "securityToken"])
def test_a_permanent_table_keeps_no_secret(option: str) -> None:
    given = {"nameServer": "a:1", "topic": "t"}
    SourceOptions.of({**given, "accessKey": "me"}).check_table()
    with pytest.raises(OptionError, match=f"option {option} would be shown to all"):
        SourceOptions.of({**given, option: "x"}).check_table()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "is more than maxOffsetsPer"),
        ({"maxTriggerDelay": "30s"}, "minOffsetsPerTrigger is needed with maxTriggerDelay"),
        ({"startingOffsetsByTimestamp": '{"u": {"b": {"0": 1}}}'}, "topic u, which is not selec"),
    ],
)
def test_what_does_not_go_together_in_a_stream(given: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        SourceOptions.of({"nameServer": "a:1", "topic": "t", **given}).check(Use.LIVE_STREAM)


@pytest.mark.parametrize(
    ("given", "use", "why"),
    [
        (
            {"assign": '{"%LMQ%x": [0]}'},
            Use.STORE_BATCH,
            "%LMQ%x is a light queue: give topic=%LMQ%x, without assign",
        ),
        (
            {"topic": "a,%LMQ%x", "verify": "store"},
            Use.STORE_BATCH,
            "without assign, verify=store and",
        ),
        ({"topic": "%LMQ%x", "view": "physical"}, Use.STORE_BATCH, "and view=physical"),
    ],
)
def test_light_queues_are_refused_where_they_are_not_served(
    given: dict[str, str], use: Use, why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        SourceOptions.of({"storePath": "/s", **given}).check(use)
    for served in (Use.STORE_BATCH, Use.STORE_STREAM, Use.TABLE):
        SourceOptions.of({"storePath": "/s", "topic": "a,%LMQ%x"}).check(served)
