# SPDX-License-Identifier: Apache-2.0
"""A broker and a name server that really serve, on a reactor without a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.logger import LogLevel, capturedLogs
from twisted.python.failure import Failure

from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.service import NameServer
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.protocol import pull, route, send
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.settings.config_file import Configuration

LONGEST_WAIT_S = 40
"""After so many seconds every request must have its answer."""


def frame_of(call: Call[Any, Any], header: Header, body: bytes = b"", opaque: int = 1) -> bytes:
    """Encodes a request."""
    return bytes_of(RemotingCommand(call.code, header.encode(), body, opaque=opaque))


def bytes_of(command: RemotingCommand) -> bytes:
    """Encodes a command."""
    return b"".join(map(bytes, encode_frame(command)))


class Wire(StringTransport):
    """A connection's end, with a method that only TCP has."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - ITCPTransport
        """Does nothing, since nothing is delayed."""


class Served:
    """A server whose clock the test advances."""

    def __init__(self) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.reactor.advance(1_700_000_000)
        self.clock = Clock(self.reactor)

    def connect(self) -> Peer:
        """Connects to the first of the server's ports."""
        return Peer(self.reactor.tcpServers[0][1].buildProtocol(None))


class Peer:
    """A client of the server that sends and gets bytes."""

    def __init__(self, protocol: Any) -> None:
        self.wire: Any = Wire()  # type: ignore[no-untyped-call]
        self._protocol = protocol
        self._decoder = FrameDecoder()
        protocol.makeConnection(self.wire)

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the connection."""
        return bool(self.wire.disconnecting)

    def tell(self, data: bytes) -> list[RemotingCommand]:
        """Sends bytes; returns the answers that come at once."""
        self._protocol.dataReceived(data)
        return self.heard()

    def heard(self) -> list[RemotingCommand]:
        """Returns what the server has sent since the last call."""
        data = self.wire.value()
        self.wire.clear()
        said = self._decoder.receive(data)
        assert self._decoder.error is None
        return said

    def leave(self) -> None:
        """Ends the connection."""
        self._protocol.connectionLost(Failure(ConnectionDone()))


class ServedBroker(Served):
    """A broker that has no name servers."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.service = Broker(
            BrokerConfig(broker_ip1="127.0.0.1"),
            StoreConfig(
                store_path_root_dir=str(folder),
                mapped_file_size_commit_log=1 << 20,
                mapped_file_size_consume_queue=20_000,
                max_hash_slot_num=100,
                max_index_num=400,
            ),
            self.clock,
        )
        self.service.start()

    def assert_serves(self) -> None:
        """Checks that a well-behaved client can send a message and pull it."""
        peer = self.connect()
        message = SendMessageRequestHeader(
            producer_group="p",
            topic="WellBehaved",
            default_topic="TBW102",
            default_topic_queue_nums=1,
            queue_id=0,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
        )
        (sent,) = peer.tell(frame_of(send.SEND_MESSAGE, message, b"fine"))
        assert sent.code == ResponseCode.SUCCESS, sent
        where = PullMessageRequestHeader(
            consumer_group="g",
            topic="WellBehaved",
            queue_id=0,
            queue_offset=int((sent.ext_fields or {})["queueOffset"]),
            max_msg_nums=32,
            sys_flag=PullSysFlag.SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        (pulled,) = peer.tell(frame_of(pull.PULL_MESSAGE, where))
        assert [message.body for message in decode_messages(pulled.body)] == [b"fine"]
        peer.leave()


class ServedNames(Served):
    """A name server."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        own = {
            "kvConfigPath": str(folder / "kvConfig.json"),
            "configStorePath": str(folder / "namesrv.properties"),
        }
        config = NamesrvConfig(
            kv_config_path=own["kvConfigPath"], config_store_path=own["configStorePath"]
        )
        self.service = NameServer(config, self.clock, configuration=Configuration((config,), own))
        self.service.start()

    def assert_serves(self) -> None:
        """Checks that a well-behaved client gets an answer about a route."""
        peer = self.connect()
        where = GetRouteInfoRequestHeader(topic="NoSuchTopic")
        (answer,) = peer.tell(frame_of(route.GET_ROUTEINFO_BY_TOPIC, where))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        peer.leave()


@contextmanager
def no_failures() -> Iterator[None]:
    """Checks that nothing in the block is logged as an error."""
    with capturedLogs() as events:
        yield
    failures = [
        str(event.get("log_format", "")).format_map({**event, "log_failure": ""})
        for event in events
        if event.get("log_level") in (LogLevel.error, LogLevel.critical)
    ]
    assert not failures, "\n".join(failures)
