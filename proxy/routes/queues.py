# SPDX-License-Identifier: Apache-2.0
"""The queues of a route as clients see them.

The endpoints of every broker are those that the client has given, since it came by them: whatever
maps ports or names between it and the proxy does so in the next call as well. The original puts its
own port there unless it is told not to.

Java: RouteActivity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.cluster import TopicRoute
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import AddressScheme, MessageType, Permission
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.message.flags import is_readable, is_writable
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.protocol.body.route import QueueData
from txrocketmq.remoting.routing.addresses import MASTER_ID

ANY_QUEUE: Final = -1
MAX_ENDPOINTS: Final = 16
MAX_HOST: Final = 253
"""The longest name of a host in DNS."""
_ENDPOINTS: Final = message_type("Endpoints")
_QUEUE: Final = message_type("MessageQueue")


def checked_endpoints(endpoints: Any, local: str) -> Any:
    """Returns the endpoints of a request, which go into its answer. Raises Refused.

    If it gives none, they are the address by which the call came in, `local`.
    """
    addresses = endpoints.addresses
    if not addresses:
        host, _, port = local.rpartition(":")
        is_ipv6 = host.startswith("[")
        found = _ENDPOINTS(scheme=AddressScheme.IPv6 if is_ipv6 else AddressScheme.IPv4)
        found.addresses.add(host=host.strip("[]"), port=int(port))
        return found
    if not endpoints.scheme or len(addresses) > MAX_ENDPOINTS:
        raise Refused(
            Code.ILLEGAL_ACCESS_POINT,
            f"endpoints have a scheme and at most {MAX_ENDPOINTS} addresses",
        )
    for address in addresses:
        if not 0 < len(address.host) <= MAX_HOST or not 0 < address.port < 65_536:
            raise Refused(
                Code.ILLEGAL_ACCESS_POINT,
                f"an address has a host and a port, not {address.host:.100}:{address.port}",
            )
    return endpoints


class QueueView:
    """Makes the queues of an answer: of this topic, at these endpoints, for these types."""

    def __init__(
        self, route: TopicRoute, topic: Any, endpoints: Any, types: Sequence[MessageType]
    ) -> None:
        self._route = route
        self._model = _QUEUE(topic=topic, accept_message_types=types)
        self._model.broker.endpoints.CopyFrom(endpoints)

    def all(self) -> Iterator[Any]:
        """Returns all queues of the route, at every broker of a name."""
        for data in self._route.data.queue_datas:
            broker = self._route.brokers.get(data.broker_name)
            for broker_id in sorted(broker.broker_addrs) if broker is not None else ():
                for queue_id, permission in _permissions(data):
                    yield self._queue(queue_id, permission, data.broker_name, broker_id)

    def assigned(self, *, is_orderly: bool) -> Iterator[Any]:
        """Returns what a consumer receives from: each queue if in order, else any of a broker."""
        for data in sorted(self._route.data.queue_datas, key=lambda each: each.broker_name):
            is_known = data.broker_name in self._route.brokers
            if is_known and is_readable(data.perm) and data.read_queue_nums > 0:
                count = min(data.read_queue_nums, MAX_QUEUES)
                both = is_writable(data.perm)
                permission = Permission.READ_WRITE if both else Permission.READ
                for queue_id in range(count) if is_orderly else (ANY_QUEUE,):
                    yield self._queue(queue_id, permission, data.broker_name, MASTER_ID)

    def _queue(self, queue_id: int, permission: int, broker_name: str, broker_id: int) -> Any:
        queue = _QUEUE()
        queue.CopyFrom(self._model)
        queue.id = queue_id
        queue.permission = permission
        queue.broker.name = broker_name
        queue.broker.id = broker_id
        return queue


def readable_brokers(route: TopicRoute) -> list[str]:
    """Returns the names of the brokers with queues that can be read."""
    return [
        data.broker_name
        for data in route.data.queue_datas
        if is_readable(data.perm) and data.read_queue_nums > 0
    ]


def _permissions(data: QueueData) -> Iterator[tuple[int, Permission]]:
    """Returns ids and permissions: queues that are only read, only written, and both, in order."""
    reads = min(data.read_queue_nums, MAX_QUEUES) if is_readable(data.perm) else 0
    writes = min(data.write_queue_nums, MAX_QUEUES) if is_writable(data.perm) else 0
    both = min(reads, writes)
    if not reads and not writes:
        none = max(1, data.read_queue_nums, data.write_queue_nums)
        yield from ((number, Permission.NONE) for number in range(min(none, MAX_QUEUES)))
        return
    queue_id = 0
    for count, permission in (
        (reads - both, Permission.READ),
        (writes - both, Permission.WRITE),
        (both, Permission.READ_WRITE),
    ):
        for _ in range(count):
            yield queue_id, permission
            queue_id += 1
