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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if __name__ != "txrocketmq.client":
    raise ImportError("import txrocketmq.client, not client: each class would exist twice")

if TYPE_CHECKING:
    from txrocketmq.client.blocking import *  # noqa: F403 - all that is public there
    from txrocketmq.client.blocking import __all__ as __all__
else:  # type checkers would take any name for one that exists

    def __getattr__(name: str) -> Any:
        """Imports what is public when it is first asked for: the proxy and commands need a part."""
        if name == "__all__" or not name.startswith("_"):
            blocking = import_module("txrocketmq.client.blocking")
            if name == "__all__" or name in blocking.__all__:
                globals().update({each: getattr(blocking, each) for each in blocking.__all__})
                globals()["__all__"] = blocking.__all__
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is public: for completion, and for those who look around."""
    public = import_module("txrocketmq.client.blocking").__all__
    return sorted([*public, "aio", "compat", "tx"])
