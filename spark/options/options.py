# SPDX-License-Identifier: Apache-2.0
"""Every option of `format("rocketmq")`, declared once: name, default, parser, where it counts.

`SourceOptions.of(options)` gives the typed values or raises OptionError; `check(use)` refuses what
makes no sense for what is being done. docs/spark_options.md is generated from the declarations.
Names are compared without regard to case, as Spark does. Names and meanings follow Spark's Kafka
source and rocketmq-spark where those have them.
"""

# ruff: noqa: RUF009 - the calls in defaults make dataclass fields

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options import option_values as values
from txrocketmq.spark.options.offsets import (
    OffsetKey,
    Offsets,
    check_order,
    ending_offsets,
    queue_text,
    queue_times,
    starting_offsets,
)
from txrocketmq.spark.options.option import USE_NAMES, Option, Use
from txrocketmq.spark.options.option import option as _option
from txrocketmq.spark.options.option_sets import check_light_queues, check_live
from txrocketmq.spark.options.option_values import Assignment, BadRecordPolicy, TopicPattern
from txrocketmq.spark.options.where import Predicate, no_push_down, parse_where
from txrocketmq.spark.options.zones import in_zone_ms, zone_named

TABLES: Final = (
    "messages", "queues", "consumequeue", "index", "topics", "groups", "offsets", "delayoffsets",
    "delay", "transactions", "checkpoint", "segments", "quarantine", "dataloss",
)  # fmt: skip

_EVERY: Final = Use.MESSAGES | Use.TABLE
_NO_MEANING: Final = frozenset({"checkpointlocation", "queryname", "serialization.format"})
"""Spark's own, which it hands to sources and sinks too."""
_OF_TABLE: Final = "option."
_OF_KAFKA: Final = {
    "paths": "storePath",
    "subscribe": "topic",
    "subscribepattern": "topicPattern",
    "kafka.bootstrap.servers": "nameServer",
    "kafka.group.id": "group",
    "filterpushdown": "where",
    "condition": "where",
    "filter": "where",
    "namesrvaddr": "nameServer",
    "tags": "subExpression",
    "consumergroup": "group",
    "producergroup": "group",
}
"""What people write who come from elsewhere, in lower case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOptions:
    """The options of one read or write, parsed. Sizes are bytes, times milliseconds."""

    store_path: str | None = _option("storePath", None, Use.STORE | Use.TABLE)
    """The directory of a store, or several, separated by commas or as globs. They can be local
    paths or begin with `file:`, `s3:`, `gs:`, `hdfs:` or `abfs:`. `load(path)` does the same.
    Either this option or nameServer is needed."""
    name_server: str | None = _option("nameServer", None, Use.LIVE | Use.SINK)
    """The addresses of name servers, separated by `;`, of the cluster to read or to write."""
    table: str = _option("table", "messages", Use.STORE_BATCH | Use.TABLE, values.choice(*TABLES))
    """The table of the store to read; see below."""

    topics: tuple[str, ...] | None = _option("topic", None, _EVERY | Use.SINK, values.names)
    """Topics, separated by commas. Without it, all topics of a store are read; a cluster needs this
    option, topicPattern or assign. In a write it is the topic of all rows, and their column is
    ignored. Of a store, light queues (`%LMQ%...`) can be named."""
    topic_pattern: TopicPattern | None = _option("topicPattern", None, _EVERY, values.pattern)
    """A regular expression that the whole name of a topic has to match. Light queues of a store are
    only read by one that begins with their prefix, such as `%LMQ%.*`."""
    assign: Assignment | None = _option("assign", None, _EVERY, values.assignment)
    """Queues: `{"topic": {"broker": [0, 1]}}`, or `{"topic": [0, 1]}` on every broker."""
    allow_unknown_topics: bool = _option(
        "allowUnknownTopics", default=False, uses=Use.STORE | Use.TABLE
    )
    """Whether `topic`, `assign` and `where` may name topics that are not in the stores, because
    they will come later or were deleted long ago. Otherwise such a name is an error, which suggests
    others.
    """
    tags: frozenset[str] | None = _option(
        "subExpression", None, Use.MESSAGES, values.tag_expression, shown="*"
    )
    """Tags separated by `||`; `*` is all. Conditions on properties are for `where` of the query."""
    sql_expression: str | None = _option("sqlExpression", None, Use.LIVE)
    """An SQL92 expression over the properties of messages, by which brokers choose what they give:
    `a > 5 AND b = 'x'`. They need `enablePropertyFilter=true`. Not together with subExpression."""

    starting_offsets: Offsets | None = _option(
        "startingOffsets", None, _EVERY, starting_offsets,
        shown="earliest (batch), latest (stream)",
    )  # fmt: skip
    """`earliest`, `latest`, offsets of queues `{"topic": {"broker": {"0": 23, "1": -1}}}` (-2
    earliest, -1 latest; queues not named begin at their earliest), the same on each broker
    `{"topic": {"0": 23, "1": -1}}`, as for Kafka, or for stores offsets in bytes of the commit log
    `{"log": {"broker": 0}}`. A stream that resumes goes by its checkpoint."""
    ending_offsets: Offsets | None = _option(
        "endingOffsets", None, Use.BATCH, ending_offsets, shown="latest"
    )
    """The first offsets that are not read, in the form of startingOffsets without `earliest`."""
    starting_timestamp_ms: int | None = _option(
        "startingTimestamp", None, Use.MESSAGES, values.timestamp
    )
    """Only messages stored at this time or later are read. The time is in ISO 8601, in the time
    zone of the session if it names none, or in milliseconds since 1970. Overrides
    startingOffsets."""
    ending_timestamp_ms: int | None = _option("endingTimestamp", None, Use.BATCH, values.timestamp)
    """Only messages stored before this time are read. Overrides endingOffsets."""
    starting_times: Mapping[OffsetKey, int] | None = _option(
        "startingOffsetsByTimestamp", None, Use.LIVE, queue_times
    )
    """Where to begin in some queues: at the first message stored at a time or later, in
    milliseconds since 1970, `{"topic": {"broker": {"0": 1763600000000}}}` or, on each broker,
    `{"topic": {"0": 1763600000000}}`; where there is none, at the end. Overrides startingOffsets,
    which count for all other queues."""
    ending_times: Mapping[OffsetKey, int] | None = _option(
        "endingOffsetsByTimestamp", None, Use.LIVE_BATCH, queue_times
    )
    """Likewise where to end: before that message. Overrides endingOffsets."""
    clock_step_ms: int | None = _option(
        "clockStepMs", None, Use.STORE_BATCH, values.whole(0),
        shown="60000 for the options startingTimestamp and endingTimestamp",
    )  # fmt: skip
    """How far the broker's clock was set back at most, in milliseconds. When it is given,
    conditions on `storeTimestamp` in the option `where` choose files of the log, as these two
    options always do."""

    columns: tuple[str, ...] | None = _option("columns", None, _EVERY, values.column_names)
    """The columns in their order, separated by commas. Without it, and with `*`, all columns but
    those on demand are read; without it a warning says so where that costs most. Other columns are
    not decoded; Spark does not tell a source which columns it needs."""
    properties_format: str = _option(
        "propertiesFormat", "map", Use.MESSAGES, values.choice("map", "json", "raw")
    )
    """The form of the column properties: a map, JSON text, or the text of the store."""
    view: str = _option("view", "logical", Use.STORE, values.choice("logical", "physical"))
    """`logical` is what consumers can see, without system topics unless they are named. `physical`
    is every record of the log, including prepared and rolled back messages and system topics."""
    decompress: bool = _option("decompress", default=True, uses=Use.MESSAGES)
    """Whether bodies are decompressed."""
    kafka_names: bool = _option("kafkaNames", default=False, uses=Use.MESSAGES)
    """Gives the columns of Spark's Kafka source: key, value, topic, partition, offset, timestamp
    and timestampType; headers with includeHeaders; and brokerName, as each broker has a partition
    0 of its own."""
    include_headers: bool = _option("includeHeaders", default=False, uses=Use.MESSAGES)
    """Whether there is Spark's Kafka column headers, with the properties. Needs kafkaNames."""
    where: tuple[Predicate, ...] = _option("where", (), Use.STORE, parse_where, shown="")
    """Conditions that all rows of this load fulfil, such as `topic = 'Orders' AND queueId IN (0,
    1)`; other messages are not decoded, and as far as possible not read. Columns are compared with
    literals by `=`, `<=>`, `!=`, `<`, `<=`, `>`, `>=`, `IN (...)`, `BETWEEN`, `LIKE`, `IS NULL` and
    `IS NOT NULL`, and conditions are joined by `AND`. The columns are topic, brokerName, tags,
    queueId, queueOffset, flag, physicalOffset, storeSize, sysFlag, reconsumeTimes,
    preparedTransactionOffset, bornTimestamp and storeTimestamp. Times are written as in
    startingTimestamp; without a zone they are in that of the session."""
    push_filters: bool = _option("pushFilters", default=False, uses=_EVERY, parse=no_push_down)
    """Only `false` is valid: Spark would let the conditions of one query take effect in others.
    Use the option `where`."""

    broker_name: str | None = _option("brokerName", None, Use.STORE | Use.TABLE)
    """The name of the broker to which the store belongs, if the store does not contain it."""
    cluster: str | None = _option("cluster", None, _EVERY)
    """The name of the cluster, for the column of that name, or names, one for each store and
    separated by commas. Without it, a store's own configuration tells, or else it is
    `DefaultCluster`. Brokers of two clusters may have the same name."""
    min_partitions: int | None = _option("minPartitions", None, _EVERY, values.whole(1, 100_000))
    """The least number of partitions, if there is enough to read. Without it, there is one for each
    file of the log, or for each queue of a cluster."""
    max_records_per_partition: int | None = _option(
        "maxRecordsPerPartition", None, Use.BATCH, values.whole(1)
    )
    """The approximate highest number of records in a partition."""
    window_bytes: int = _option(
        "windowBytes", 8 << 20, Use.STORE | Use.TABLE, values.size(1 << 16, 1 << 30), shown="8m"
    )
    """How much of the log is read at once; a task needs about 180 MiB of memory in addition."""
    batch_bytes: int = _option("batchBytes", 8 << 20, _EVERY, values.size(1 << 12, 1 << 28),
                               shown="8m")  # fmt: skip
    """How much of the log goes into one Arrow batch."""
    max_record_bytes: int = _option("maxRecordBytes", 64 << 20, Use.STORE | Use.TABLE,
                                    values.size(64 << 20, 1 << 30), shown="64m")  # fmt: skip
    """The size of the largest record that is read, and of the largest body when decompressed, 64m
    or more. A larger record counts as damaged."""
    max_bytes_per_second: int | None = _option(
        "maxBytesPerSecond", None, Use.STORE | Use.TABLE, values.size(1 << 16, 1 << 50)
    )
    """How much of the log each task may read in a second, approximately, to spare a broker that
    uses the same disk."""
    max_bytes_per_trigger: int | None = _option(
        "maxBytesPerTrigger", None, Use.STORE_STREAM, values.size(1, 1 << 60)
    )
    """How much of the logs a micro-batch may contain, approximately, of all brokers together."""
    max_offsets_per_trigger: int | None = _option(
        "maxOffsetsPerTrigger", None, Use.LIVE_STREAM, values.whole(1)
    )
    """The highest number of messages in a micro-batch; each queue gets a share according to how
    much waits there."""

    min_offsets_per_trigger: int | None = _option(
        "minOffsetsPerTrigger", None, Use.LIVE_STREAM, values.whole(1)
    )
    """The least number of messages in a micro-batch: fewer wait for others, up to maxTriggerDelay.
    `Trigger.AvailableNow` does not wait."""
    max_trigger_delay_s: int = _option(
        "maxTriggerDelay", 15 * 60, Use.LIVE_STREAM, values.span, shown="15m"
    )
    """How long messages wait for others at most with minOffsetsPerTrigger, such as `30s`."""

    fail_on_data_loss: bool = _option("failOnDataLoss", default=True, uses=_EVERY)
    """Whether a read fails if messages that it should read have been deleted. Otherwise they are
    skipped, a warning is logged, and the table `dataloss` lists them."""
    bad_records: BadRecordPolicy = _option(
        "badRecords", values.FAIL, _EVERY, values.bad_records, shown="fail"
    )
    """What happens at a damaged record: the read fails (`fail`), the record is skipped with a
    warning (`skip`), or it is also written to a folder of Parquet files (`quarantine=PATH`)."""
    verify: str = _option("verify", "tail", Use.STORE | Use.TABLE,
                          values.choice("none", "tail", "crc", "store"))  # fmt: skip
    """The checks. `tail` and `none`: records are complete, and the last ones of the log match
    their CRC-32. `crc`: each body matches its CRC-32. `store`: in addition, consume queues and
    index agree with the log."""

    group: str | None = _option("group", None, Use.LIVE | Use.SINK, values.group)
    """The consumer group of a read, or the producer group of a write."""
    commit_group_offsets: bool = _option("commitGroupOffsets", default=False, uses=Use.LIVE_STREAM)
    """Whether a stream commits what it has read as the offsets of `group`, so that tools show its
    lag. The stream itself resumes from its checkpoint."""
    pull_batch_size: int = _option("pullBatchSize", 32, Use.LIVE, values.whole(1, 1024))
    """How many messages a pull request asks for; the broker may send fewer."""
    pull_timeout_ms: int = _option("pullTimeoutMs", 3000, Use.LIVE, values.whole(1, 600_000))
    """How long a name server or broker may take to answer, in milliseconds."""

    access_key: str | None = _option(
        "accessKey", None, Use.LIVE | Use.SINK, shown="$ROCKETMQ_ACCESS_KEY"
    )
    """The name of the account that signs requests, for brokers with ACL (of version 1 or 2). The
    environment is the driver's."""
    secret_key: str | None = _option(
        "secretKey", None, Use.LIVE | Use.SINK, shown="$ROCKETMQ_SECRET_KEY", is_secret=True
    )
    """The account's secret. A permanent table cannot keep it, since a table's schema is shown."""
    security_token: str | None = _option("securityToken", None, Use.LIVE | Use.SINK, is_secret=True)
    """The token that goes with temporary keys."""
    use_tls: bool = _option("useTls", default=False, uses=Use.LIVE | Use.SINK)
    """Whether connections to name servers and brokers are encrypted."""
    tls_trust_cert_path: str | None = _option("tlsTrustCertPath", None, Use.LIVE | Use.SINK)
    """A file of certificates in PEM by which servers are checked; without it they are not. The
    driver and each worker need the file."""
    tls_cert_path: str | None = _option("tlsCertPath", None, Use.LIVE | Use.SINK)
    """A file with our own certificate in PEM, for servers that ask for one."""
    tls_key_path: str | None = _option("tlsKeyPath", None, Use.LIVE | Use.SINK)
    """The file with its private key in PEM."""

    send_timeout_ms: int = _option("sendTimeoutMs", 3000, Use.SINK, values.whole(1, 600_000))
    """How long a broker may take to store a message, in milliseconds."""
    send_retries: int = _option("sendRetries", 2, Use.SINK, values.whole(0, 100))
    """How often a failed send is repeated, at another broker if there is one."""
    max_message_bytes: int = _option("maxMessageBytes", 4 << 20, Use.SINK,
                                     values.size(1 << 10, 1 << 28), shown="4m")  # fmt: skip
    """The size of the largest message, or batch of messages, that the brokers accept."""
    transactional: bool = _option("transactional", default=False, uses=Use.SINK)
    """Whether rows are sent as half messages, which consumers receive only when all tasks are done.
    Each message is then committed by itself, or rolled back if the write fails."""
    batch_key: str | None = _option("batchKey", None, Use.SINK)
    """A name for this write. If it is repeated under the same name, only messages that are not
    there yet are sent. `rocketmq_batch` sets it for each micro-batch."""

    given: frozenset[str] = frozenset()
    """Names of the options that were given, as declared."""
    local_times: frozenset[str] = frozenset()
    """Names of attributes with a LocalTime."""
    zone: str | None = None
    """The zone that in_zone has used."""
    tasks_know_zone: bool = False
    """Whether local_times are in the zone of the session, which only tasks have."""
    registered_zone: str | None = None
    """The zone that the session had when the source was registered: see session_zone."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """The options parsed; OptionError for unknown names and values that make no sense."""
        options = of_table(options) or options
        parsed: dict[str, Any] = {}
        given: list[str] = []
        local_times: set[str] = set()
        for name, value in options.items():
            lower = "storepath" if name.lower() == "path" else name.lower()
            if lower in _NO_MEANING:
                continue
            declared = _BY_LOWER_NAME.get(lower)
            if declared is None:
                raise OptionError(f"unknown option {name}{_hint(lower)}; see docs/spark_options.md")
            attribute, option = declared
            if option.name in given:
                raise OptionError("option storePath and the path of load() are both given")
            if not value.strip():
                raise OptionError(f"option {option.name} is empty")
            parsed[attribute] = option.parse(option.name, value)
            given.append(option.name)
            if _has_local_time(parsed[attribute]):
                local_times.add(attribute)
        result = cls(**parsed, given=frozenset(given), local_times=frozenset(local_times))
        result._check_together()
        return result

    def _check_together(self) -> None:
        if self.store_path is not None and self.name_server is not None:
            raise OptionError("storePath and nameServer are both given: read one or the other")
        chosen = self.given & {"topic", "topicPattern", "assign"}
        if len(chosen) > 1:
            raise OptionError(f"only one of {', '.join(sorted(chosen))} may be given")
        if len(self.local_times & {"starting_timestamp_ms", "ending_timestamp_ms"}) != 1:
            self.check_times()
        if self.starting_offsets is not None and self.ending_offsets is not None:
            check_order(self.starting_offsets, self.ending_offsets)
        if self.kafka_names and self.properties_format != "map":
            raise OptionError("kafkaNames has headers instead of properties: no propertiesFormat")
        if self.include_headers and not self.kafka_names:
            raise OptionError("option kafkaNames=true is needed with includeHeaders")

    def check_times(self) -> None:
        """Raises OptionError if the read would end before it begins."""
        start, end = self.starting_timestamp_ms, self.ending_timestamp_ms
        if start is not None and end is not None and end < start:
            raise OptionError("endingTimestamp is before startingTimestamp")

    def in_zone(self, name: str) -> SourceOptions:
        """Returns the options with times that name no zone taken as those of clocks in this one.

        Raises OptionError when there is no zone of this name, or a time is before another then.
        """
        if not self.local_times:
            return self
        zone = zone_named(name)
        times: dict[str, Any] = {
            each: in_zone_ms(getattr(self, each), zone) for each in self.local_times - {"where"}
        }
        where = tuple(each.in_zone(zone) for each in self.where)
        result = replace(self, **times, where=where, local_times=frozenset(), zone=name)
        result.check_times()
        return result

    def use(self, *, stream: bool) -> Use:
        """What a read with these options does; OptionError when it says not of what."""
        if self.store_path is None and self.name_server is None:
            raise OptionError(
                "option storePath (directory of a store) or nameServer (addresses) is needed. Spark"
                " does not hand a source the options of a permanent table that was created with a"
                " list of columns: create it without one, columns are chosen by the option columns"
                " (its first column may also have been dropped: create it again)"
            )
        if self.store_path is None:
            return Use.LIVE_STREAM if stream else Use.LIVE_BATCH
        if stream:
            return Use.STORE_STREAM
        return Use.STORE_BATCH if self.table == "messages" else Use.TABLE

    def check(self, use: Use) -> None:
        """OptionError when an option was given that has no meaning for this use, or one lacks."""
        for _, option in _BY_LOWER_NAME.values():
            if option.name in self.given and use not in option.uses:
                where = ", ".join(name for kind, name in USE_NAMES.items() if kind in option.uses)
                raise OptionError(
                    f"option {option.name} has no meaning here ({USE_NAMES[use]});"
                    f" it is for: {where}"
                )
        if use in Use.STORE:
            is_physical = self.verify == "store" or self.view == "physical"
            check_light_queues(
                self.topics or (self.assign.topics() if self.assign else ()),
                self.topic_pattern,
                is_as_consumers_see=not is_physical and self.assign is None,
            )
        if use in Use.LIVE:
            check_live(
                self.given,
                {"startingOffsets": self.starting_offsets, "endingOffsets": self.ending_offsets},
                has_tags=self.tags is not None,
                least=self.min_offsets_per_trigger,
                most=self.max_offsets_per_trigger,
                commits=self.commit_group_offsets,
            )
        offsets = (self.starting_offsets, self.ending_offsets)
        queues = [each.queues if each else None for each in offsets]
        for named in (*queues, self.starting_times, self.ending_times):
            for queue in sorted(named or ()):
                self._check_selected(*queue)
        if use == Use.SINK and self.name_server is None:
            raise OptionError("option nameServer is needed to write")

    def _check_selected(self, topic: str, broker_name: str, queue_id: int) -> None:
        if not self.selects(topic):
            raise OptionError(f"offsets are given for the topic {topic}, which is not selected")
        if self.assign is not None and queue_id not in self.assign.of(topic, broker_name):
            raise OptionError(
                f"offsets are given for {queue_text(topic, broker_name, queue_id)},"
                " which assign does not name"
            )

    def check_table(self) -> None:
        """OptionError when a permanent table was to keep a secret, which its schema would show."""
        for _, option in _BY_LOWER_NAME.values():
            if option.is_secret and option.name in self.given:
                raise OptionError(
                    f"option {option.name} would be shown to all who may see the table's schema:"
                    " leave it out, and set ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY in the"
                    " environment of the driver, or create a temporary view"
                )

    def selects(self, topic: str) -> bool:
        """Whether topic, topicPattern or assign select the topic; true when none is given."""
        if self.topics is not None:
            return topic in self.topics
        if self.topic_pattern is not None:
            return self.topic_pattern.matches(topic)
        return self.assign is None or topic in self.assign.topics()


def _has_local_time(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(isinstance(each, Predicate) and each.is_local for each in value)
    return isinstance(value, values.LocalTime)


def of_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """The options of CREATE TABLE, among all that Spark says of the table; None of anything else.

    It gives them as they are and once more as `option.NAME`, beside the table's own properties, its
    owner, comment and provider; a path is there without that prefix only.
    """
    lower = {name.lower(): value for name, value in options.items()}
    if "provider" not in lower:
        return None
    found = {
        name.removeprefix(_OF_TABLE): value
        for name, value in lower.items()
        if name.startswith(_OF_TABLE)
    }
    path = lower.get("path", lower.get("location"))
    if path is not None and not found.keys() & {"path", "storepath"}:
        found["path"] = path
    return found


def declared_options() -> dict[str, Option]:
    """All options, by the name of the attribute of SourceOptions that holds the value."""
    return {
        each.name: each.metadata["option"]
        for each in fields(SourceOptions)
        if "option" in each.metadata
    }


_BY_LOWER_NAME: Final = {
    option.name.lower(): (attribute, option) for attribute, option in declared_options().items()
}


def _hint(lower_name: str) -> str:
    known = _OF_KAFKA.get(lower_name)
    if known is None:
        near = difflib.get_close_matches(lower_name, _BY_LOWER_NAME, n=1)
        known = _BY_LOWER_NAME[near[0]][1].name if near else None
    return f" (did you mean {known}?)" if known else ""
