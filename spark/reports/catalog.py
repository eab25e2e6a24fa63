# SPDX-License-Identifier: Apache-2.0
"""The reports, in the order of the page. Each is one query that anybody can copy and change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.reports.broker_label import BROKER_LABEL
from txrocketmq.spark.reports.report import (
    Bars,
    Percentiles,
    Report,
    Stack,
    Timeline,
)
from txrocketmq.spark.reports.space import COMPRESSION, DISK, RETENTION, SIZES
from txrocketmq.spark.reports.topic_kind import with_kinds

OVERVIEW: Final = Report(
    "overview",
    "Overview",
    """\
What each store holds. All records of its commit log are counted, including those of the topics that
brokers keep for themselves; a batch that is one record counts as its messages.""",
    """\
WITH broker AS (
  SELECT cluster, brokerName, count(*) AS records, sum(storeSize) AS bytes,
         round(avg(bodySize)) AS meanBody, count(DISTINCT topic) AS topics,
         min(storeTimestamp) AS first, max(storeTimestamp) AS last
  FROM {records}
  GROUP BY cluster, brokerName)
SELECT __BROKER__ AS brokerName,
       records, bytes, meanBody, topics, first, last
FROM broker
ORDER BY brokerName
""".replace("__BROKER__", BROKER_LABEL),
)

LAG: Final = Report(
    "lag",
    "Consumer lag",
    """\
How many messages each consumer group has yet to read from each topic, according to the offsets that
the brokers keep. `gone` counts messages that were deleted before the group read them. `age` is the
time since the oldest message that is unread and still in the log was stored. Consumers in
broadcasting mode keep their offsets themselves, so they are not listed; neither are the groups of
the system.""",
    """\
SELECT o.group, o.topic, count(*) AS queues, sum(o.lag) AS lag,
       sum(greatest(o.minOffset - o.offset, 0)) AS gone, min(o.oldestUnread) AS oldest,
       CAST(floor((unix_millis(:now) - unix_millis(min(o.oldestUnread))) / 1000) AS BIGINT) AS age
FROM {offsets} o
WHERE NOT startswith(o.group, 'CID_RMQ_SYS_')
GROUP BY o.group, o.topic
ORDER BY lag DESC, o.group, o.topic
""",
    Bars(["group", "topic"], "lag"),
)

THROUGHPUT: Final = Report(
    "throughput",
    "Throughput",
    """\
Messages and bytes stored per second. Each row covers a period of the length given in `period`: the
log is divided into at most 72 periods of equal length, so that weeks and months fit as well.
Periods without messages have rows, too.""",
    """\
WITH span AS (
  SELECT unix_seconds(min(storeTimestamp)) AS first, unix_seconds(max(storeTimestamp)) AS last
  FROM {messages}),
handy AS (
  SELECT explode(split('1 5 10 30 60 300 600 1800 3600 7200 21600 43200 86400 172800', ' '))
           AS step),
width AS (
  SELECT first, last, coalesce(
    min(CASE WHEN floor(last / CAST(step AS BIGINT)) - floor(first / CAST(step AS BIGINT)) < 72
             THEN CAST(step AS BIGINT) END),
    CAST(86400 * (1 + floor((last - first) / (86400 * 70))) AS BIGINT)) AS period
  FROM span CROSS JOIN handy
  GROUP BY first, last),
bucket AS (
  SELECT explode(sequence(first - first % period, last, period)) AS start, period
  FROM width
  WHERE first IS NOT NULL),
stored AS (
  SELECT unix_seconds(storeTimestamp) - unix_seconds(storeTimestamp) % period AS start,
         count(*) AS messages, sum(storeSize) AS bytes
  FROM {messages} CROSS JOIN width
  GROUP BY ALL)
SELECT timestamp_seconds(b.start) AS time, b.period,
       coalesce(s.messages, 0) AS messages, coalesce(s.bytes, 0) AS bytes,
       round(coalesce(s.messages, 0) / b.period, 4) AS messagesPerSecond,
       round(coalesce(s.bytes, 0) / b.period, 1) AS bytesPerSecond
FROM bucket b
LEFT JOIN stored s ON s.start = b.start
ORDER BY time
""",
    Timeline("time", ["messagesPerSecond", "bytesPerSecond"]),
)


TOPICS: Final = Report(
    "topics",
    "Hot topics",
    """\
The topics with the most messages, and the share that each has of all messages. The topics that
follow them are one row, `(others)`, so that the shares add up to 100 %. `kind` tells the retry
topics and dead letters of consumer groups, and topics that were deleted, from the topics of
applications; the topics that brokers keep for themselves are not counted here, but under Disk
usage.""",
    with_kinds("""\
WITH __KNOWN__,
topic AS (
  SELECT topic, count(*) AS messages, sum(storeSize) AS bytes, sum(bodySize) AS bodyBytes,
         count(DISTINCT (cluster, brokerName, queueId)) AS queues,
         min(storeTimestamp) AS first, max(storeTimestamp) AS last
  FROM {messages}
  GROUP BY topic),
ranked AS (
  SELECT t.*, least(row_number() OVER (ORDER BY messages DESC, topic), :top + 1) AS place,
         __IS_DELETED__
  FROM topic t LEFT JOIN known ON known.name = t.topic),
folded AS (
  SELECT if(place > :top, '(others)', max(topic)) AS topic,
         if(place > :top, NULL, max(__KIND__)) AS kind,
         sum(messages) AS messages, sum(bytes) AS bytes, sum(bodyBytes) AS bodyBytes,
         sum(queues) AS queues, min(first) AS first, max(last) AS last, place
  FROM ranked
  GROUP BY place),
shared AS (
  SELECT *, 100 / sum(messages) OVER () AS each,
         sum(messages) OVER (ORDER BY place) AS upTo
  FROM folded)
SELECT topic, kind, messages,
       round(round(each * upTo, 1) - round(each * (upTo - messages), 1), 1) AS percent,
       bytes, round(bodyBytes / messages) AS meanBody, queues, first, last
FROM shared
ORDER BY place
"""),
    Bars(["topic"], "messages"),
)


QUEUES: Final = Report(
    "queues",
    "Hot queues",
    """\
The queues with the most messages. `skew` is the number of messages in the queue divided by the mean
of all queues of its topic that hold messages: 1 is an even share, 4 is four times as much.""",
    """\
WITH queue AS (
  SELECT topic, cluster, brokerName, queueId, count(*) AS messages, sum(storeSize) AS bytes,
         max(storeTimestamp) AS last
  FROM {messages}
  GROUP BY topic, cluster, brokerName, queueId)
SELECT topic,
       __BROKER__ AS brokerName,
       queueId, messages, bytes,
       round(messages / avg(messages) OVER (PARTITION BY topic), 2) AS skew, last
FROM queue
ORDER BY messages DESC, topic, brokerName, queueId
LIMIT :top
""".replace("__BROKER__", BROKER_LABEL),
    Bars(["topic", "brokerName", "queueId"], "messages"),
)

KEYS: Final = Report(
    "keys",
    "Hot keys",
    """\
The message keys that occur most often, and the number of queues in which each occurs. A message
with several keys counts for each of them.""",
    """\
WITH word AS (
  SELECT topic, explode(split(keys, ' ')) AS key, cluster, brokerName, queueId, storeSize,
         storeTimestamp
  FROM {messages}
  WHERE keys IS NOT NULL),
hot AS (
  SELECT topic, key
  FROM word
  WHERE key != ''
  GROUP BY topic, key
  ORDER BY count(*) DESC, topic, key
  LIMIT :top)
SELECT topic, key, count(*) AS messages, sum(storeSize) AS bytes,
       count(DISTINCT (cluster, brokerName, queueId)) AS queues,
       min(storeTimestamp) AS first, max(storeTimestamp) AS last
FROM word JOIN hot USING (topic, key)
GROUP BY topic, key
ORDER BY messages DESC, topic, key
""",
    Bars(["topic", "key"], "messages"),
)

TAGS: Final = Report(
    "tags",
    "Tag mix",
    """\
How the messages of each topic divide among its tags. Shown are the topics with the most messages
and the ten most common tags of each; its other tags are one row, `(others)`. Messages without a tag
count as `(none)`.""",
    """\
WITH tag AS (
  SELECT topic, coalesce(tags, '(none)') AS tag, count(*) AS messages, sum(storeSize) AS bytes
  FROM {messages}
  GROUP BY ALL),
ranked AS (
  SELECT *, sum(messages) OVER (PARTITION BY topic) AS ofTopic,
         row_number() OVER (PARTITION BY topic ORDER BY messages DESC, tag) AS place
  FROM tag),
folded AS (
  SELECT topic, ofTopic, if(place <= 10, tag, '(others)') AS tag,
         sum(messages) AS messages, sum(bytes) AS bytes, min(place) AS place
  FROM ranked
  GROUP BY ALL),
chosen AS (
  SELECT *, dense_rank() OVER (ORDER BY ofTopic DESC, topic) AS topicPlace,
         sum(messages) OVER (PARTITION BY topic ORDER BY place) AS upTo
  FROM folded)
SELECT topic, tag, messages,
       round(round(100 * upTo / ofTopic, 1) - round(100 * (upTo - messages) / ofTopic, 1), 1)
         AS percent,
       bytes
FROM chosen
WHERE topicPlace <= :top
ORDER BY topicPlace, place
""",
    Stack("topic", "tag", "percent"),
)

LATENCY: Final = Report(
    "latency",
    "Delay from producer to store",
    """\
The time between the creation of a message, by the clock of its producer, and its storage, by the
clock of the broker: the median, the higher percentiles and the maximum, in milliseconds. Retried
messages and committed messages of transactions are left out, because they were created long before;
messages with a delay count with their delay. `clockAhead` counts messages that were stored before
they were created, which means that the two clocks differ.""",
    """\
WITH delay AS (
  SELECT topic, unix_millis(storeTimestamp) - unix_millis(bornTimestamp) AS ms,
         count(*) AS n
  FROM {messages}
  WHERE reconsumeTimes = 0 AND (sysFlag & 12) = 0
  GROUP BY ALL),
ranked AS (
  SELECT *, sum(n) OVER (PARTITION BY topic ORDER BY ms) AS upTo,
         sum(n) OVER (PARTITION BY topic) AS ofTopic
  FROM delay)
SELECT topic, sum(n) AS messages,
       min(CASE WHEN 2 * upTo >= ofTopic THEN ms END) AS p50,
       min(CASE WHEN 10 * upTo >= 9 * ofTopic THEN ms END) AS p90,
       min(CASE WHEN 100 * upTo >= 99 * ofTopic THEN ms END) AS p99,
       min(CASE WHEN 1000 * upTo >= 999 * ofTopic THEN ms END) AS p999,
       max(ms) AS max, sum(CASE WHEN ms < 0 THEN n ELSE 0 END) AS clockAhead
FROM ranked
GROUP BY topic
ORDER BY messages DESC, topic
LIMIT :top
""",
    Percentiles(["topic"], ["p50", "p90", "p99", "p999", "max"]),
)

PRODUCERS: Final = Report(
    "producers",
    "Producers",
    """\
The addresses that messages came from, with the time from creation to storage as in the previous
report, so that a producer that is slow, far away or has a wrong clock stands out.""",
    """\
WITH sent AS (
  SELECT regexp_extract(bornHost, '^(.*):[0-9]+$', 1) AS host, topic,
         unix_millis(storeTimestamp) - unix_millis(bornTimestamp) AS ms, count(*) AS n,
         sum(storeSize) AS size, min(storeTimestamp) AS oldest, max(storeTimestamp) AS newest
  FROM {messages}
  WHERE reconsumeTimes = 0 AND (sysFlag & 12) = 0
  GROUP BY ALL),
ranked AS (
  SELECT *, sum(n) OVER (PARTITION BY host ORDER BY ms) AS upTo,
         sum(n) OVER (PARTITION BY host) AS ofHost
  FROM sent)
SELECT host, sum(n) AS messages, sum(size) AS bytes, count(DISTINCT topic) AS topics,
       min(CASE WHEN 2 * upTo >= ofHost THEN ms END) AS p50,
       min(CASE WHEN 100 * upTo >= 99 * ofHost THEN ms END) AS p99,
       max(ms) AS max, min(oldest) AS first, max(newest) AS last
FROM ranked
GROUP BY host
ORDER BY messages DESC, host
LIMIT :top
""",
    Bars(["host"], "messages"),
)

RETRIES: Final = Report(
    "retries",
    "Retries and dead letters",
    """\
For each consumer group: the messages that were put into its retry topic, the messages that were
given up (dead letters), and the highest number of attempts at one message. The percentages relate
to what the group has consumed of the messages that are in the store. Messages that still wait for
their next attempt are part of the scheduled backlog.""",
    """\
WITH consumed AS (
  SELECT o.group, sum(greatest(least(o.offset, o.maxOffset) - o.minOffset, 0)) AS messages
  FROM {offsets} o
  WHERE NOT startswith(o.topic, '%')
  GROUP BY o.group),
again AS (
  SELECT if(startswith(topic, '%DLQ%'), substr(topic, 6), split_part(substr(topic, 8), '+', 1))
           AS group,
         count(CASE WHEN startswith(topic, '%RETRY%') THEN 1 END) AS retries,
         count(CASE WHEN startswith(topic, '%DLQ%') THEN 1 END) AS deadLetters,
         max(reconsumeTimes) AS mostTries, max(storeTimestamp) AS last
  FROM {records}
  WHERE startswith(topic, '%RETRY%') OR startswith(topic, '%DLQ%')
  GROUP BY ALL)
SELECT a.group, c.messages AS consumed, a.retries, a.deadLetters, a.mostTries,
       round(try_divide(100 * a.retries, c.messages), 2) AS retryPercent,
       round(try_divide(100 * a.deadLetters, c.messages), 2) AS deadPercent, a.last
FROM again a
LEFT JOIN consumed c ON c.group = a.group
ORDER BY a.retries + a.deadLetters DESC, a.group
""",
    Bars(["group"], "retries"),
)

DEAD_LETTERS: Final = Report(
    "deadletters",
    "Dead letters by topic",
    "The topics that the dead letters of each consumer group were sent to originally.",
    """\
WITH dead AS (
  SELECT substr(topic, 6) AS group,
         coalesce(properties['DLQ_ORIGIN_TOPIC'], properties['RETRY_TOPIC']) AS origin,
         reconsumeTimes, storeTimestamp
  FROM {dead_letters}
  WHERE startswith(topic, '%DLQ%'))
SELECT d.group, d.origin, count(*) AS messages, max(d.reconsumeTimes) AS mostTries,
       min(d.storeTimestamp) AS first, max(d.storeTimestamp) AS last
FROM dead d
GROUP BY d.group, d.origin
ORDER BY messages DESC, d.group, d.origin
""",
    Bars(["group", "origin"], "messages"),
)

TRANSACTIONS: Final = Report(
    "transactions",
    "Unresolved transactions",
    """\
Messages that were prepared and have been neither committed nor rolled back: no consumer sees them.
`mostChecks` is the highest number of times that the broker asked the producer about one of them; it
gives up after 15.""",
    """\
SELECT topic, producerGroup, count(*) AS messages, sum(bodySize) AS bodyBytes,
       max(checkTimes) AS mostChecks, min(storeTimestamp) AS oldest,
       CAST(floor((unix_millis(:now) - unix_millis(min(storeTimestamp))) / 1000) AS BIGINT) AS age
FROM {transactions}
GROUP BY topic, producerGroup
ORDER BY messages DESC, topic, producerGroup
""",
    Bars(["topic", "producerGroup"], "messages"),
)

SCHEDULED: Final = Report(
    "scheduled",
    "Scheduled backlog",
    """\
Messages that wait for their time of delivery, by topic and delay level; messages with an individual
time have no level. Messages that wait for their next attempt are listed under the retry topic of
their group. `overdue` counts the messages whose time has passed: more than a few mean that the
broker has stopped or does not keep up.""",
    """\
SELECT topic, delayLevel, count(*) AS messages, sum(bodySize) AS bodyBytes,
       count(CASE WHEN deliverTimestamp < :now THEN 1 END) AS overdue,
       min(deliverTimestamp) AS nextDue, max(deliverTimestamp) AS lastDue,
       CAST(floor((unix_millis(max(deliverTimestamp)) - unix_millis(:now)) / 1000) AS BIGINT)
         AS dueIn
FROM {delay}
GROUP BY topic, delayLevel
ORDER BY messages DESC, topic, delayLevel
""",
    Bars(["topic", "delayLevel"], "messages"),
)


REPORTS: Final = (
    OVERVIEW, LAG, THROUGHPUT, TOPICS, QUEUES, KEYS, TAGS, LATENCY, PRODUCERS, RETRIES,
    DEAD_LETTERS, TRANSACTIONS, SCHEDULED, SIZES, COMPRESSION, DISK, RETENTION,
)  # fmt: skip


def chosen(names: Sequence[str]) -> list[Report]:
    """Returns the reports with these names, in the order of the page; all without names.

    Raises OptionError for an unknown name.
    """
    known = {report.name: report for report in REPORTS}
    for name in names:
        if name not in known:
            raise OptionError.of("only", name, known)
    return [report for report in REPORTS if not names or report.name in names]
