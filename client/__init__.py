# SPDX-License-Identifier: Apache-2.0
"""The client of RocketMQ for programs that wait; `aio` and `tx` have the same names."""

if __name__ != "txrocketmq.client":
    raise ImportError("import txrocketmq.client, not client: each class would exist twice")

from txrocketmq.client.blocking import *  # noqa: F403 - all that is public there
