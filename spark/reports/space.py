# SPDX-License-Identifier: Apache-2.0
"""Reports about space: how large messages are, what fills the disk, and which files go next."""

from __future__ import annotations

from typing import Final

from txrocketmq.spark.reports.broker_label import BROKER_LABEL
from txrocketmq.spark.reports.report import Bars, Histogram, Report
from txrocketmq.spark.reports.topic_kind import with_kinds

SIZES: Final = Report(
    "sizes",
    "Message sizes",
    """\
The number of messages by the size of their stored bodies. Each row counts the bodies from
`fromBytes` up to twice that size; `upTo` is the percentage of messages in this row and those above
it.""",
    """\
WITH size AS (
  SELECT if(bodySize = 0, 0, CAST(power(2, length(bin(bodySize)) - 1) AS BIGINT)) AS fromBytes,
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
    """\
How producers compress the bodies of each topic, and how large the bodies are as stored. Shown are
the topics whose bodies take the most space.""",
    """\
WITH stored AS (
  SELECT topic, compression, count(*) AS messages, sum(bodySize) AS bodyBytes
  FROM {messages}
  GROUP BY topic, compression),
summed AS (
  SELECT *, sum(bodyBytes) OVER (PARTITION BY topic) AS ofTopic,
         100 / sum(messages) OVER (PARTITION BY topic) AS each,
         sum(messages) OVER (PARTITION BY topic ORDER BY messages DESC, compression) AS upTo
  FROM stored),
chosen AS (
  SELECT *, dense_rank() OVER (ORDER BY ofTopic DESC, topic) AS topicPlace
  FROM summed)
SELECT topic, compression, messages, bodyBytes,
       round(round(each * upTo, 1) - round(each * (upTo - messages), 1), 1) AS percent
FROM chosen
WHERE topicPlace <= :top
ORDER BY topicPlace, messages DESC, compression
""",
)

DISK: Final = Report(
    "disk",
    "Disk usage",
    """\
Which topics fill the commit log. The topics that follow the largest ones are one row, `(others)`,
so that the shares add up to 100 %. `kind` tells the topics that brokers keep for themselves
(`system`), and topics that were deleted, from those of applications. `bytesPerHour` is the mean
over the time that the log covers; `atRetention` is the size that the topic reaches when the log
covers as many hours as files are kept. Both are empty for a log of less than an hour. A log that
does not cover that time yet is still growing.""",
    with_kinds("""\
WITH span AS (
  SELECT (unix_millis(max(storeTimestamp)) - unix_millis(min(storeTimestamp))) / 3600000 AS hours
  FROM {records}),
__KNOWN__,
topic AS (
  SELECT topic, count(*) AS records, sum(storeSize) AS bytes, min(storeTimestamp) AS oldest
  FROM {records}
  GROUP BY topic),
ranked AS (
  SELECT t.*, least(row_number() OVER (ORDER BY bytes DESC, topic), :top + 1) AS place,
         __IS_DELETED__
  FROM topic t LEFT JOIN known ON known.name = t.topic),
folded AS (
  SELECT if(place > :top, '(others)', max(topic)) AS topic,
         if(place > :top, NULL, max(__KIND__)) AS kind,
         sum(records) AS records, sum(bytes) AS bytes, min(oldest) AS oldest, place
  FROM ranked
  GROUP BY place),
shared AS (
  SELECT *, 100 / sum(bytes) OVER () AS each, sum(bytes) OVER (ORDER BY place) AS upTo
  FROM folded)
SELECT topic, kind, records, bytes,
       round(round(each * upTo, 1) - round(each * (upTo - bytes), 1), 1) AS percent, oldest,
       if(hours >= 1, round(bytes / hours), NULL) AS bytesPerHour,
       if(hours >= 1, round(bytes / hours * :reservedHours), NULL) AS atRetention
FROM shared CROSS JOIN span
ORDER BY place
"""),
    Bars(["topic"], "bytes"),
)


RETENTION: Final = Report(
    "retention",
    "Next deletions",
    """\
The files of the commit log in the order in which they will be deleted. A broker deletes a file when
its last message is older than files are kept (the setting fileReservedTime), at the hour of the day
that is set for it, and earlier when the disk fills up. The file that is being written (`current`)
is never deleted. `waiting` counts the consumer groups that have unread messages in the file: they
lose these messages unless they read them in time.""",
    """\
WITH behind AS (
  SELECT o.cluster, o.brokerName, o.group, min(o.oldestUnread) AS oldest
  FROM {offsets} o
  WHERE NOT startswith(o.group, 'CID_RMQ_SYS_')
  GROUP BY o.cluster, o.brokerName, o.group),
file AS (
  SELECT *,
         __BROKER__ AS broker,
         firstOffset = max(firstOffset) OVER (PARTITION BY cluster, brokerName) AS current,
         timestamp_millis(unix_millis(lastTimestamp) + 3600000 * :reservedHours) AS goes
  FROM {segments})
SELECT f.broker AS brokerName, f.firstOffset, f.usedBytes AS bytes, f.firstTimestamp AS first,
       f.lastTimestamp AS last, if(f.current, NULL, f.goes) AS goes,
       if(f.current, NULL,
          CAST(floor((unix_millis(f.goes) - unix_millis(:now)) / 1000) AS BIGINT)) AS goesIn,
       f.current, count(b.group) AS waiting
FROM file f
LEFT JOIN behind b
  ON b.cluster = f.cluster AND b.brokerName = f.brokerName AND b.oldest <= f.lastTimestamp
GROUP BY ALL
ORDER BY goes NULLS LAST, f.broker, f.firstOffset
LIMIT :top
""".replace("__BROKER__", BROKER_LABEL),
)
