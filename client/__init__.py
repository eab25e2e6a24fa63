# SPDX-License-Identifier: Apache-2.0
"""The client of RocketMQ for programs that use threads, or none: each call returns when it is done.

`txrocketmq.client.aio` has the same names for asyncio, `txrocketmq.client.tx` for Twisted, and
`txrocketmq.client.compat` those of the package rocketmq-client-python. Other modules and folders
here are the inside of the client and may change from one release to the next.

    from txrocketmq.client import Producer

    with Producer("orders-producers", namesrv_addr="127.0.0.1:9876") as producer:
        result = producer.send("Orders", "hello")
        print(result.status, result.queue, result.queue_offset)

`help` of a class lists its arguments and its settings: Producer, TransactionProducer, PushConsumer,
LitePullConsumer, PopConsumer and Admin.
"""

if __name__ != "txrocketmq.client":
    raise ImportError("import txrocketmq.client, not client: each class would exist twice")

from txrocketmq.client.blocking import *  # noqa: F403 - all that is public there
from txrocketmq.client.blocking import __all__ as __all__


def __dir__() -> list[str]:
    """What is public: for completion, and for those who look around."""
    return sorted([*__all__, "aio", "compat", "tx"])
