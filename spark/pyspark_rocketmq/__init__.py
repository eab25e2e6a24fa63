# SPDX-License-Identifier: Apache-2.0
"""Lets Spark find `format("rocketmq")` by itself: its workers look for packages called `pyspark_*`
and take their `DefaultSource`. setup.py installs this folder as `pyspark_rocketmq`.
"""

from txrocketmq.spark.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
