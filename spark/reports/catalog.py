# SPDX-License-Identifier: Apache-2.0
"""The reports, in the order of the page. Each is one query that anybody can copy and change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.reports.report import (
    Bars,
    Histogram,
    Percentiles,
    Report,
    Stack,
    Timeline,
)

OVERVIEW: Final = Report(
    "overview",
    "Overview",
    "What is in each store: all records of its commit log, system topics included.",
    """\
SELECT brokerName, count(*) AS records, sum(storeSize) AS bytes, round(avg(bodySize)) AS meanBody,
       count(DISTINCT topic) AS topics, min(storeTimestamp) AS first, max(storeTimestamp) AS last
FROM {records}
GROUP BY brokerName
ORDER BY brokerName
""",
)

LAG: Final = Report(
    "lag",
    "Consumer lag",
    """\
What each group has yet to consume of each topic, by the offsets that brokers keep. `gone` counts
messages that were deleted before the group read them. `age` is the time since the oldest unread
message in the log was stored. Groups that consume by broadcast keep their offsets themselves:
these and the system's own are not here. Reads no log.""",
    """\
SELECT group, topic, count(*) AS queues, sum(lag) AS lag,
       sum(greatest(minOffset - offset, 0)) AS gone, min(oldestUnread) AS oldest,
       timestampdiff(SECOND, min(oldestUnread), :now) AS age
FROM {offsets}
WHERE NOT startswith(group, 'CID_RMQ_SYS_')
GROUP BY group, topic
ORDER BY lag DESC, group, topic
""",
    Bars(["group", "topic"], "lag"),
)

THROUGHPUT: Final = Report(
    "throughput",
    "Throughput",
    """\
Messages and bytes stored a second. A row is a stretch of `seconds`: the shortest of a second, ten,
a minute and so on up to a day of which 200 cover the time between the first message and the last.
Stretches without messages are rows, too.""",
    """\
WITH span AS (
  SELECT unix_seconds(min(storeTimestamp)) AS first, unix_seconds(max(storeTimestamp)) AS last
  FROM {messages}),
width AS (
  SELECT first, last, coalesce(
    get(filter(array(1, 10, 60, 300, 900, 3600, 21600, 86400), s -> s * 200 > last - first), 0),
    86400 * (1 + (last - first) DIV (86400 * 200))) AS seconds
  FROM span),
bucket AS (
  SELECT explode(sequence(first - first % seconds, last, seconds)) AS start, seconds
  FROM width
  WHERE first IS NOT NULL),
stored AS (
  SELECT unix_seconds(storeTimestamp) - unix_seconds(storeTimestamp) % seconds AS start,
         count(*) AS messages, sum(storeSize) AS bytes
  FROM {messages} CROSS JOIN width
  GROUP BY ALL)
SELECT timestamp_seconds(b.start) AS time, b.seconds,
       coalesce(s.messages, 0) AS messages, coalesce(s.bytes, 0) AS bytes,
       round(coalesce(s.messages, 0) / b.seconds, 1) AS messagesPerSecond,
       round(coalesce(s.bytes, 0) / b.seconds) AS bytesPerSecond
FROM bucket b
LEFT JOIN stored s ON s.start = b.start
ORDER BY time
""",
    Timeline("time", ["messagesPerSecond", "bytesPerSecond"]),
)

TOPICS: Final = Report(
    "topics",
    "Hot topics",
    "The topics with the most messages, and their share of all messages.",
    """\
SELECT topic, count(*) AS messages,
       round(100 * count(*) / sum(count(*)) OVER (), 1) AS percent,
       sum(storeSize) AS bytes, round(avg(bodySize)) AS meanBody,
       count(DISTINCT brokerName, queueId) AS queues,
       min(storeTimestamp) AS first, max(storeTimestamp) AS last
FROM {messages}
GROUP BY topic
ORDER BY messages DESC, topic
LIMIT :top
""",
    Bars(["topic"], "messages"),
)

QUEUES: Final = Report(
    "queues",
    "Hot queues",
    """\
The queues with the most messages. `skew` compares a queue with the mean of those of its topic that
hold messages: 1 is even, 4 is four times its share.""",
    """\
WITH queue AS (
  SELECT topic, brokerName, queueId, count(*) AS messages, sum(storeSize) AS bytes,
         max(storeTimestamp) AS last
  FROM {messages}
  GROUP BY topic, brokerName, queueId)
SELECT topic, brokerName, queueId, messages, bytes,
       round(messages / avg(messages) OVER (PARTITION BY topic), 2) AS skew, last
FROM queue
ORDER BY messages DESC, topic, brokerName, queueId
LIMIT :top
""",
    Bars(["topic", "brokerName", "queueId"], "messages"),
)

KEYS: Final = Report(
    "keys",
    "Hot keys",
    "The keys that occur most, each word of KEYS by itself, and in how many queues they are.",
    """\
WITH word AS (
  SELECT topic, explode(split(keys, ' ')) AS key, brokerName, queueId, storeSize, storeTimestamp
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
       count(DISTINCT brokerName, queueId) AS queues,
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
How the messages of each topic spread over tags: of the topics with the most messages, the ten
commonest tags; the rest is one row, `(others)`. Messages without a tag count as `(none)`.""",
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
  SELECT *, dense_rank() OVER (ORDER BY ofTopic DESC, topic) AS topicPlace
  FROM folded)
SELECT topic, tag, messages, round(100 * messages / ofTopic, 1) AS percent, bytes
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
Milliseconds between a message's birth, by the producer's clock, and its storing, by the broker's.
Messages tried again and committed halves of transactions are left out, since they were born
before; delayed messages count with their delay when they are delivered. `clockAhead` counts
messages that were stored before they were born: clocks differ.""",
    """\
WITH delay AS (
  SELECT topic, unix_millis(storeTimestamp) - unix_millis(bornTimestamp) AS ms
  FROM {messages}
  WHERE reconsumeTimes = 0 AND (sysFlag & 12) = 0),
summary AS (
  SELECT topic, count(*) AS messages,
         percentile_approx(ms, array(0.5D, 0.9D, 0.99D, 0.999D), 10000) AS p,
         max(ms) AS max, count_if(ms < 0) AS clockAhead
  FROM delay
  GROUP BY topic)
SELECT topic, messages, p[0] AS p50, p[1] AS p90, p[2] AS p99, p[3] AS p999, max, clockAhead
FROM summary
ORDER BY messages DESC, topic
LIMIT :top
""",
    Percentiles(["topic"], ["p50", "p90", "p99", "p999", "max"]),
)

PRODUCERS: Final = Report(
    "producers",
    "Producers",
    """\
Who sends, by address, and the milliseconds from birth to storing as in the report before: one
producer that is slow, far away or has a wrong clock stands out.""",
    """\
WITH sent AS (
  SELECT regexp_extract(bornHost, '^(.*):[0-9]+$', 1) AS host, topic, storeSize, storeTimestamp,
         unix_millis(storeTimestamp) - unix_millis(bornTimestamp) AS ms
  FROM {messages}
  WHERE reconsumeTimes = 0 AND (sysFlag & 12) = 0),
summary AS (
  SELECT host, count(*) AS messages, sum(storeSize) AS bytes, size(collect_set(topic)) AS topics,
         percentile_approx(ms, array(0.5D, 0.99D), 10000) AS p, max(ms) AS max,
         min(storeTimestamp) AS first, max(storeTimestamp) AS last
  FROM sent
  GROUP BY host)
SELECT host, messages, bytes, topics, p[0] AS p50, p[1] AS p99, max, first, last
FROM summary
ORDER BY messages DESC, host
LIMIT :top
""",
    Bars(["host"], "messages"),
)

RETRIES: Final = Report(
    "retries",
    "Retries and dead letters",
    """\
By group: messages put into its retry topic, messages given up (its dead letters), the most tries
of one, and both as percent of what the group has consumed of the messages in the store. Messages
that wait to be tried again are in the scheduled backlog.""",
    """\
WITH consumed AS (
  SELECT group, sum(greatest(least(offset, maxOffset) - minOffset, 0)) AS messages
  FROM {offsets}
  WHERE NOT startswith(topic, '%')
  GROUP BY group),
again AS (
  SELECT if(startswith(topic, '%DLQ%'), substr(topic, 6), split_part(substr(topic, 8), '+', 1))
           AS group,
         count_if(startswith(topic, '%RETRY%')) AS retries,
         count_if(startswith(topic, '%DLQ%')) AS deadLetters,
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
    "Of which topics the dead letters of each group are.",
    """\
SELECT substr(topic, 6) AS group,
       coalesce(properties['DLQ_ORIGIN_TOPIC'], properties['RETRY_TOPIC']) AS origin,
       count(*) AS messages, max(reconsumeTimes) AS mostTries,
       min(storeTimestamp) AS first, max(storeTimestamp) AS last
FROM {dead_letters}
WHERE startswith(topic, '%DLQ%')
GROUP BY ALL
ORDER BY messages DESC, group, origin
""",
    Bars(["group", "origin"], "messages"),
)

TRANSACTIONS: Final = Report(
    "transactions",
    "Unresolved transactions",
    """\
Messages that were prepared and neither committed nor rolled back: nobody consumes them yet.
`mostChecks` is how often a producer was asked about one of them at most; a broker gives up after
15 times.""",
    """\
SELECT topic, producerGroup, count(*) AS messages, sum(bodySize) AS bodyBytes,
       max(checkTimes) AS mostChecks, min(storeTimestamp) AS oldest,
       timestampdiff(SECOND, min(storeTimestamp), :now) AS age
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
Messages that wait for their time, by topic and delay level; those with a time of their own have no
level. Messages to be tried again wait here, too, for the retry topic of their group. `overdue`
counts those that are due already: more than a few mean that the broker does not keep up, or is
stopped.""",
    """\
SELECT topic, delayLevel, count(*) AS messages, sum(bodySize) AS bodyBytes,
       count_if(deliverTimestamp < :now) AS overdue,
       min(deliverTimestamp) AS nextDue, max(deliverTimestamp) AS lastDue,
       timestampdiff(SECOND, :now, max(deliverTimestamp)) AS dueIn
FROM {delay}
GROUP BY topic, delayLevel
ORDER BY messages DESC, topic, delayLevel
""",
    Bars(["topic", "delayLevel"], "messages"),
)

SIZES: Final = Report(
    "sizes",
    "Message sizes",
    """\
How many messages have bodies of which size, as stored. A row counts bodies from `fromBytes` up to
twice that; `upTo` is the percentage of messages in this row and those above it.""",
    """\
WITH size AS (
  SELECT if(bodySize = 0, 0, shiftleft(1L, CAST(floor(log2(bodySize)) AS INT))) AS fromBytes,
         storeSize
  FROM {messages}),
bucket AS (
  SELECT fromBytes, count(*) AS messages, sum(storeSize) AS bytes
  FROM size
  GROUP BY fromBytes)
SELECT fromBytes, messages, bytes,
       round(100 * sum(messages) OVER (ORDER BY fromBytes) / sum(messages) OVER (), 1) AS upTo
FROM bucket
ORDER BY fromBytes
""",
    Histogram("fromBytes", "messages"),
)

COMPRESSION: Final = Report(
    "compression",
    "Compression",
    "How the bodies of each topic are compressed by its producers, and how large they are then.",
    """\
WITH stored AS (
  SELECT topic, compression, count(*) AS messages, sum(bodySize) AS bodyBytes
  FROM {messages}
  GROUP BY topic, compression)
SELECT topic, compression, messages, bodyBytes,
       round(100 * messages / sum(messages) OVER (PARTITION BY topic), 1) AS percent
FROM stored
ORDER BY bodyBytes DESC, topic, compression
LIMIT :top
""",
)

DISK: Final = Report(
    "disk",
    "Who fills the disk",
    """\
Bytes of the commit log by topic, system topics included. `bytesPerHour` is the mean over the time
that the log covers, `atRetention` what the topic comes to when the log is as old as files are
kept; both are empty for a log of less than an hour. A log that covers less than that is still
growing.""",
    """\
WITH span AS (
  SELECT (unix_millis(max(storeTimestamp)) - unix_millis(min(storeTimestamp))) / 3600000 AS hours
  FROM {records}),
topic AS (
  SELECT topic, count(*) AS records, sum(storeSize) AS bytes, min(storeTimestamp) AS oldest
  FROM {records}
  GROUP BY topic)
SELECT topic, records, bytes, round(100 * bytes / sum(bytes) OVER (), 1) AS percent, oldest,
       if(hours >= 1, round(bytes / hours), NULL) AS bytesPerHour,
       if(hours >= 1, round(bytes / hours * :reservedHours), NULL) AS atRetention
FROM topic CROSS JOIN span
ORDER BY bytes DESC, topic
LIMIT :top
""",
    Bars(["topic"], "bytes"),
)

RETENTION: Final = Report(
    "retention",
    "When files go",
    """\
The files of the commit log that go first. A broker deletes a file when its last record is older
than files are kept (its setting fileReservedTime), at the hour it is set to, earlier when the disk
fills up, and never the last one. `waiting` counts the groups that have something to read in it:
they lose messages unless they read them before.""",
    """\
WITH behind AS (
  SELECT brokerName, group, min(oldestUnread) AS oldest
  FROM {offsets}
  WHERE NOT startswith(group, 'CID_RMQ_SYS_')
  GROUP BY brokerName, group)
SELECT s.brokerName, s.firstOffset, s.usedBytes AS bytes, s.firstTimestamp AS first,
       s.lastTimestamp AS last, timestampadd(HOUR, :reservedHours, s.lastTimestamp) AS goes,
       timestampdiff(SECOND, :now, timestampadd(HOUR, :reservedHours, s.lastTimestamp)) AS goesIn,
       count(b.group) AS waiting
FROM {segments} s
LEFT JOIN behind b ON b.brokerName = s.brokerName AND b.oldest <= s.lastTimestamp
GROUP BY ALL
ORDER BY goes NULLS LAST, s.brokerName, s.firstOffset
LIMIT :top
""",
)


REPORTS: Final = (
    OVERVIEW, LAG, THROUGHPUT, TOPICS, QUEUES, KEYS, TAGS, LATENCY, PRODUCERS, RETRIES,
    DEAD_LETTERS, TRANSACTIONS, SCHEDULED, SIZES, COMPRESSION, DISK, RETENTION,
)  # fmt: skip


def chosen(names: Sequence[str]) -> list[Report]:
    """The reports with these names, in the order of the page; all when there are none.

    Raises OptionError for a name that is unknown.
    """
    known = {report.name: report for report in REPORTS}
    for name in names:
        if name not in known:
            raise OptionError.of("only", name, known)
    return [report for report in REPORTS if not names or report.name in names]
