# SPDX-License-Identifier: Apache-2.0
"""Before a slave follows a master: whether its log is the beginning of the master's.

The protocol of replication cannot tell. A slave says where its log ends, and a master goes on from
there, whatever the bytes before are. So a master that comes back as a slave, with messages that the
new master never got, would mix two logs; with original brokers it does. Here the slave asks the
master for the message at the offset of its own last one (VIEW_MESSAGE_BY_ID, which original masters
serve as well), and compares the bytes. If they are the same, so is everything before them: no two
logs that were different once have the same record at the same offset later, as it contains the time
and the queue offset.

If they differ, the place where the logs separate is searched, by halves, which takes some forty
requests however long the log is. Then the slave does not follow: a person decides, or has decided
with haTruncate that what only the slave has is cut off and kept in `lost`. Files are not cut under
open queues: the cut is ordered (cut.py), and the broker starts again, which does it.

Java: has no counterpart in plain mode; AutoSwitchHAClient.doTruncate with a controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from twisted.internet.defer import Deferred, ensureDeferred

from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.broker.store.replication.own_records import OwnRecord, OwnRecords
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError, HeaderError, ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.operations.admin import GET_BROKER_RUNTIME_INFO
from txrocketmq.remoting.protocol.query import VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader
from txrocketmq.remoting.transport.client import as_deferred

TIMEOUT_MS: Final = 3_000
MOST_REQUESTS: Final = 70
"""How many requests one search takes at most: 63 for halves of the longest log, and a few."""
_NOT_FOUND: Final = "can not find message"
"""What a remark says, of all brokers, if no message begins at an offset."""


class DivergedError(Exception):
    """The slave has messages that the master lacks; the text is a sentence that says what to do."""


class Asks(Protocol):
    """What sends requests: Connections of the remoting."""

    def invoke(
        self, address: str, call: Any, header: Any, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        """Sends a request to "host:port"."""


class Following(Protocol):
    """A slave, as far as it says where its master is."""

    ha_address: str
    master_address: str | None


class Extent(NamedTuple):
    """Where the log of a master begins and ends."""

    start: int
    end: int


class Separation(NamedTuple):
    """Where the logs separate, and what only this slave has behind that."""

    offset: int
    messages: int
    size_bytes: int


class Rejoin:
    """Compares the log of a slave with its master's; `check` is called before each connection.

    `master_address` returns where the master serves requests, or None as long as nobody knows.
    `truncate` orders that the log is cut at an offset, and has the broker start again; None where
    nothing is ever cut. `call_soon` calls a function in a later turn of the reactor. From
    `damaged_from` on, a part of the log was found to be damaged when it was opened.
    """

    def __init__(
        self,
        records: OwnRecords,
        master_address: Callable[[], str | None],
        connections: Asks,
        call_soon: Callable[[Callable[[], None]], object],
        truncate: Callable[[int], None] | None = None,
        damaged_from: int | None = None,
    ) -> None:
        self._damaged_from = damaged_from
        self._records = records
        self._master_address = master_address
        self._connections = connections
        self._call_soon = call_soon
        self._truncate = truncate

    def check(self) -> Deferred[None]:
        """Fires if the slave may follow. Fails with DivergedError if it may not, and with a
        RemotingError if the master could not be asked: then it may be asked again.
        """
        return ensureDeferred(self._check())

    async def _check(self) -> None:
        records = self._records
        if records.end <= records.start:
            return
        last = records.last()
        end = records.start if last is None else last.end
        if last is not None and await self._view(last.offset) != last.data:
            await self._separate(last)
        elif records.end > end and not await self._has_rest(end):
            self._refuse(Separation(end, 0, records.end - end))
        elif self._damaged_from is not None:
            await self._replace_damaged(self._damaged_from)

    async def _has_rest(self, offset: int) -> bool:
        """Whether the master has what this log has behind its last whole record."""
        rest = self._records.behind(offset)
        theirs = await self._view(offset, is_place=True)
        if theirs is not None:
            return theirs.startswith(rest)
        # No message begins there: in a file of the master's log that goes on, that is a blank.
        is_blank = self._records.begins_blank(offset)
        return is_blank and self._records.end <= (await self._extent()).end

    # --- where the logs separate ---

    async def _separate(self, last: OwnRecord) -> None:
        """Finds the last record that both logs have, and refuses to follow, or cuts there."""
        records, extent = self._records, await self._extent()
        start = max(records.start, extent.start)
        if start >= records.end or start >= extent.end:
            raise DivergedError(
                f"this slave's log runs from {records.start} to {records.end}, and the master's"
                f" from {extent.start} to {extent.end}: they have nothing in common that could be"
                " compared. Start this slave with an empty store, or with a copy of the master's"
            )
        common = await self._search(start, last.offset)
        if common is None:
            raise DivergedError(
                f"this slave's log and the master's differ from {start} on, where the first message"
                " begins that both should have: they are logs of different masters, or this store"
                " is older than what the master has kept. Start this slave with an empty store"
            )
        place = await self._last(records.boundary(common.end))
        place = await self._confirmed(place, extent)
        if self._damaged_from is not None and self._damaged_from >= extent.start:
            place = min(place, self._damaged_from)
        count = await self._last(records.count_from(place))
        self._refuse(Separation(place, count, records.end - place))

    async def _confirmed(self, place: int, extent: Extent) -> int:
        """The place where the logs certainly separate, if both are the same up to this one.

        Raises ResponseError if the master did not know what it has when it was asked before.
        """
        records = self._records
        while place < extent.end:
            own = records.first_between(place, place + 1)
            theirs = await self._view(place, is_place=True)
            if own is not None and theirs != own.data:
                return place
            if own is not None or records.file_end(place) >= records.end:
                raise ResponseError(
                    ResponseCode.SYSTEM_ERROR,
                    f"the master has said different things about the message at {place}",
                )
            if theirs is not None and theirs != records.behind(place):
                return place
            place = records.file_end(place)  # both have a blank there
        return place

    async def _search(self, start: int, high: int) -> OwnRecord | None:
        """The last record that both have, if the one at `high` differs; None if there is none."""
        first = self._records.first_between(start, high)
        if first is None or not await self._is_same(first):
            return None
        common, low = first, first.end
        while low < high:
            middle = (low + high) // 2
            found = self._records.first_between(middle, high)
            if found is not None and await self._is_same(found):
                common, low = found, found.end
            else:
                high = middle
        return common

    def _refuse(self, found: Separation) -> None:
        if found.offset <= self._records.start:
            raise DivergedError(
                f"no message of this slave's log is whole, which runs from {self._records.start} to"
                f" {self._records.end}. Start this slave with an empty store"
            )
        if self._truncate is not None:
            self._truncate(found.offset)
            raise DivergedError(
                f"this slave's log and the master's differ from {found.offset} on; the last"
                f" {messages(found.messages)} of this slave, {found.size_bytes:,} bytes, are cut"
                " off and kept in lost/ in its store, as haTruncate=true says: it starts again"
            )
        raise DivergedError(
            f"this slave's log and the master's differ from {found.offset} on: only this slave has"
            f" the last {messages(found.messages)} of its log, {found.size_bytes:,} bytes. Stop it,"
            f" and have them cut off and kept with txrocketmq store cut STORE --at {found.offset},"
            " or by haTruncate=true whenever this happens; or start it with an empty store"
        )

    async def _replace_damaged(self, offset: int) -> None:
        """Has the master send what is damaged here, unless it has it no more.

        Else this slave could take the place of the master without messages that both should have.
        """
        if offset < (await self._extent()).start:
            return
        found = f"this slave's log is damaged from {offset} on, as was found when it was opened"
        if offset <= self._records.start:
            raise DivergedError(f"{found}. Start this slave with an empty store")
        if self._truncate is None:
            raise DivergedError(
                f"{found}. To have the master send it again, stop this slave, and cut it with"
                f" txrocketmq store cut STORE --at {offset}, or set haTruncate=true; or start it"
                " with an empty store"
            )
        self._truncate(offset)
        raise DivergedError(
            f"{found}. It is cut there, as haTruncate=true says, and starts again, so that the"
            " master sends it once more; what was cut off is kept in lost/ in its store"
        )

    # --- requests ---

    async def _is_same(self, record: OwnRecord) -> bool:
        return await self._view(record.offset) == record.data

    async def _view(self, offset: int, *, is_place: bool = False) -> bytes | None:
        """The bytes of the master's record at this offset; None if none begins there.

        If it `is_place`, a record of the master certainly begins or ends there.
        """
        header = ViewMessageRequestHeader(offset=offset)
        reply = await self._ask(VIEW_MESSAGE_BY_ID, header)
        if reply.code == ResponseCode.SUCCESS:
            return bytes(reply.body_bytes)
        remark = reply.remark or ""
        if reply.code == ResponseCode.SYSTEM_ERROR and (_NOT_FOUND in remark or not is_place):
            # Within a record, an original master takes any four bytes for a size, and may fail.
            return None
        raise ResponseError(
            reply.code,
            f"the master does not say which message it has at {offset}: {remark}"
            f" (code {reply.code})",
        )

    async def _extent(self) -> Extent:
        reply = await self._ask(GET_BROKER_RUNTIME_INFO, NoHeader())
        try:
            table = KVTable.decode(reply.body_bytes).table
            start, end = int(table["commitLogMinOffset"]), int(table["commitLogMaxOffset"])
        except (HeaderError, ValueError, KeyError):
            raise ResponseError(
                reply.code, f"the master does not say where its log ends: {reply.remark}"
            ) from None
        return Extent(max(start, 0), end)

    async def _ask(self, call: Any, header: Any) -> Any:
        address = self._master_address()
        if not address:
            raise ConnectError("no name server names the master yet, which has to be asked first")
        pending = self._connections.invoke(address, call, header, timeout_ms=TIMEOUT_MS)
        return await as_deferred(pending)

    async def _last(self, steps: Iterator[int]) -> int:
        """The last value of some steps, each of which is done in a turn of its own."""
        reached = 0
        for reached in steps:  # noqa: B007 - the last one is the result
            turn: Deferred[None] = Deferred()
            self._call_soon(lambda turn=turn: turn.callback(None))  # type: ignore[misc]
            await turn
        return reached


def address_of_master(slave: Following) -> str | None:
    """Where the master of a slave serves requests: as name servers say, or if none of them names
    it, at the port before that for replication, which is usual. None if nothing is known.
    """
    host, _, port = slave.ha_address.rpartition(":")
    if slave.master_address or not host or not port.isdecimal():
        return slave.master_address
    return f"{host}:{int(port) - 1}"
