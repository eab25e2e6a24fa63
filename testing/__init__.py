# SPDX-License-Identifier: Apache-2.0
"""Servers for tests of programs that use RocketMQ.

txrocketmq.testing.server has a server for a `with` block, and pytest the fixtures `rocketmq` and
`rocketmq_server`; in_process is for Twisted, container for Docker. The server's attribute `aio` has
the methods for asyncio.
"""

if __name__ != "txrocketmq.testing":
    raise ImportError("import txrocketmq.testing, not testing: each class would exist twice")
