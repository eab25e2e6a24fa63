# SPDX-License-Identifier: Apache-2.0
"""Apache RocketMQ in Python on Twisted: a name server, a broker, a client, and readers of stores.

    txrocketmq.client           the client, for programs that use threads or none
    txrocketmq.client.aio       the same client for asyncio
    txrocketmq.client.tx        the same client for Twisted
    txrocketmq.client.compat    the names of the package rocketmq-client-python
    txrocketmq.testing.server   a name server and a broker for tests; pytest has them as fixtures
    txrocketmq.spark            a source and a sink for Apache Spark

Sending a message and receiving it:

    from txrocketmq.client import Producer, PushConsumer

    with Producer("orders-producers", namesrv_addr="127.0.0.1:9876") as producer:
        producer.send("Orders", "hello")

    def listener(messages, context):
        for message in messages:
            print(message.body)

    with PushConsumer("stock", {"Orders": "*"}, listener, namesrv_addr="127.0.0.1:9876"):
        input("Press Enter to stop")

The command `txrocketmq`, or `python -m txrocketmq`, sends, shows and administers; `txrocketmq
standalone` runs a name server and a broker. `mqnamesrv` and `mqbroker` each run one of them.

What is not named here belongs to the inside, and may change from one release to the next.
"""

from __future__ import annotations

if __name__ != "txrocketmq":
    raise ImportError("import txrocketmq, not package: this folder is installed as txrocketmq")

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    """The version, which takes so long to find out that few imports should wait for it."""
    if name != "__version__":
        raise AttributeError(f"module 'txrocketmq' has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - see above

    try:
        return version("txrocketmq")
    except PackageNotFoundError:
        return "of a source tree that is not installed"
