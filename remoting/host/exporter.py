# SPDX-License-Identifier: Apache-2.0
"""The port for those who watch a server: /metrics for Prometheus, /health and /ready for others.

Collecting looks at every topic and group, so it is done in slices of two milliseconds, between
which everything else has its turn. Metrics are collected piece by piece, and each piece becomes
text at once. To make the text of everything in one go would hold up the server for as long as all
slices together, even in another thread, since only one thread runs Python at a time. Scrapes that
come while one is collected get the same answer. This module, and what it imports, is imported only
where metrics are switched on.

Java: OpenTelemetry's PrometheusHttpServer, as BrokerMetricsManager starts it. The other two paths
are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IPushProducer
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import NOT_FOUND, OK, SERVICE_UNAVAILABLE
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.visitors import Visitors
from txrocketmq.remoting.primitives.plain_text import plain

SLICE_MS: Final = 2
"""For how many ms collecting goes on while everything else waits."""
_OWN: Final[Sequence[Collector]] = (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR)
"""The collectors of metrics that every process has."""
MAX_SERIES: Final = 50_000
"""How many series of one metric are given at most. Names of clients and groups are foreign, so
their number has no bound (metricsOtelCardinalityLimit of the original)."""
LEFT_OUT: Final = "txrocketmq_metrics_left_out_series"
_CONTROL: Final = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
"""Control characters, which names may contain and which a terminal would obey."""
_CHUNK_BYTES: Final = 64 * 1024
"""About how many bytes are written at once."""
MOST_TEXTS: Final = 4
"""How many texts are kept until all have read them. If there are more, those who are still reading
the oldest are too slow."""
_TEXT: Final = b"text/plain; charset=utf-8"


class Awaited(Protocol):
    """Work that may block and that has to be done before collecting can go on."""

    def run(self) -> None:
        """Does the work; called in a thread."""

    def finish(self) -> None:
        """Takes over the result of `run`; called in the reactor's thread."""


Collecting = Iterator[Metric | Awaited]
Collect = Callable[[], Collecting]
"""Returns an iterator over pieces of metrics with few samples each, in which those of one name
follow one another. Among them is each work that has to be done before the next piece."""

log = Logger()


class Exporter:
    """The HTTP server of these paths; `why_not_ready` returns a sentence, or "" while ready."""

    def __init__(
        self, clock: Clock, collect: Collect, why_not_ready: Callable[[], str] = str
    ) -> None:
        self._clock = clock
        self._collect = collect
        self._waiting: list[Request] = []
        self._told: set[str] = set()
        """The metrics whose series were too many when they were last collected."""
        self._listening: IListeningPort | None = None
        self._is_over = False
        root = _Root()  # type: ignore[no-untyped-call]
        root.putChild(b"metrics", _Page(self._scraped))
        root.putChild(b"health", _Page(lambda request: _tell(request, OK, "alive")))
        root.putChild(b"ready", _Page(lambda request: _tell_ready(request, why_not_ready())))
        root.putChild(b"", _Page(lambda request: _tell(request, OK, "/metrics /health /ready")))
        self._site: Any = Visitors(root, clock.reactor)
        self._read: list[list[_Chunks]] = []
        """Those who read each of the last texts."""

    def listen(self, port: int, interface: str) -> int:
        """Listens on a port (0: any free one) and returns its number. Raises CannotListenError."""
        self._listening = self._clock.reactor.listenTCP(port, self._site, interface=interface)
        address: Any = self._listening.getHost()
        return int(address.port)

    def stop(self) -> Deferred[None] | None:
        """Stops listening; scrapes in progress get no answer. Fires when the port is closed."""
        self._is_over = True
        listening, self._listening = self._listening, None
        return None if listening is None else listening.stopListening()

    def _scraped(self, request: Request) -> None:
        is_first = not self._waiting
        self._waiting.append(request)
        request.notifyFinish().addErrback(lambda _: None)  # the client has gone
        if is_first:
            self._slice(_Text(chain(self._collect(), _of_process())))

    def _slice(self, text: _Text) -> None:
        if self._is_over:
            return
        end_ms = self._clock.steady_ms() + SLICE_MS
        try:
            while more := text.add():
                if more is not True:
                    self._clock.in_thread(more.run).addBoth(self._awaited, more, text)
                    return
                if self._clock.steady_ms() >= end_ms:
                    self._clock.later(0, self._slice, text)
                    return
        except Exception:  # noqa: BLE001 - the next scrape may go well
            self._failed(Failure())
            return
        self._tell_left_out(text.left_out)
        waiting, self._waiting = self._waiting, []
        chunks = text.chunks()
        self._read = [
            readers for readers in self._read if any(not each.is_over for each in readers)
        ]
        while len(self._read) >= MOST_TEXTS:
            for each in self._read.pop(0):
                each.abort()
        self._read.append(
            [
                _Chunks(self._clock, request, chunks)
                for request in waiting
                if not request._disconnected
            ]
        )

    def _tell_left_out(self, left_out: Mapping[str, int]) -> None:
        for name in left_out.keys() - self._told:
            log.warn(
                "the metric {name} has more than {most} series: {count} of them are left out",
                name=name,
                most=MAX_SERIES,
                count=left_out[name],
            )
        self._told = set(left_out)

    def _awaited(self, why: Any, awaited: Awaited, text: _Text) -> None:
        if isinstance(why, Failure):
            self._failed(why)
        else:
            awaited.finish()
            self._slice(text)

    def _failed(self, why: Failure) -> None:
        log.failure("metrics could not be collected", failure=why)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            _tell(request, SERVICE_UNAVAILABLE, "metrics could not be collected: see the log")


class _Root(Resource):
    """The root of all paths."""

    def getChild(self, path: bytes, request: Request) -> IResource:  # noqa: N802 - Twisted's
        """Returns the page for unknown paths."""
        page: Any = _Page(_not_found)
        found: IResource = page
        return found


class _Page(Resource):
    """The page of one path; `answer` finishes a request, now or later."""

    def __init__(self, answer: Callable[[Request], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.isLeaf = True
        self._answer = answer

    def render_GET(self, request: Request) -> int:  # noqa: N802 - Twisted's
        """Answers GET and HEAD; Twisted refuses all other methods."""
        if request.postpath:
            _not_found(request)
        else:
            self._answer(request)
        return int(NOT_DONE_YET)


class _Text:
    """The text of metrics, to which pieces are added one by one."""

    def __init__(self, collecting: Collecting) -> None:
        self._collecting = collecting
        self._name = ""
        self._pieces: list[bytes] = []
        self._size_bytes = 0
        self._chunks: list[bytes] = []
        self._series = 0
        """How many series the metric of the last piece has so far."""
        self.left_out: dict[str, int] = {}
        """How many series were too many, by metric."""

    def add(self) -> bool | Awaited:
        """Adds the next piece.

        Returns True, or False if there is none left, or the work that has to be done first.
        """
        piece = next(self._collecting, None)
        if piece is None:
            if self.left_out:
                self._add(_left_out(self.left_out))
            return False
        if not isinstance(piece, Metric):
            return piece
        series = len(piece.samples) + (self._series if piece.name == self._name else 0)
        if series > MAX_SERIES:
            left_out = self.left_out.get(piece.name, 0)
            self.left_out[piece.name] = left_out + len(piece.samples)
        else:
            self._series = series
            self._add(piece)
        return True

    def _add(self, piece: Metric) -> None:
        one: Any = _One(piece)
        try:
            text = bytes(generate_latest(one))
        except UnicodeEncodeError:  # a lone surrogate in the name of a client
            piece.samples = [
                each._replace(labels={name: plain(its) for name, its in each.labels.items()})
                for each in piece.samples
            ]
            text = bytes(generate_latest(one))
        text = _CONTROL.sub(_escaped, text)
        if piece.name == self._name:
            while text.startswith(b"#"):  # its type and help were written already
                text = text.partition(b"\n")[2]
        self._name = piece.name
        self._pieces.append(text)
        self._size_bytes += len(text)
        if self._size_bytes >= _CHUNK_BYTES:
            self._join()

    def _join(self) -> None:
        self._chunks.append(b"".join(self._pieces))
        self._pieces, self._size_bytes = [], 0

    def chunks(self) -> list[bytes]:
        """Returns the whole text, in chunks."""
        self._join()
        return self._chunks


def _escaped(found: re.Match[bytes]) -> bytes:
    return rb"\\x%02x" % found[0][-1]


def _left_out(series: Mapping[str, int]) -> Metric:
    gauge = GaugeMetricFamily(LEFT_OUT, "series that were too many", labels=["metric"])
    for name, count in series.items():
        gauge.add_metric([name], count)
    return gauge


class _One(NamedTuple):
    """A registry with a single metric, as far as generate_latest needs one."""

    metric: Metric

    def collect(self) -> Sequence[Metric]:
        return (self.metric,)


def _of_process() -> Collecting:
    for each in _OWN:
        yield from each.collect()


def exposition(collecting: Collecting) -> bytes:
    """Returns the text of these metrics and of those of the process, collected in one go."""
    text = _Text(chain(collecting, _of_process()))
    while more := text.add():
        if more is not True:
            more.run()
            more.finish()
    return b"".join(text.chunks())


def _not_found(request: Request) -> None:
    _tell(request, NOT_FOUND, "there are /metrics, /health and /ready")


def _tell(request: Request, code: int, text: str) -> None:
    request.setResponseCode(code)
    request.setHeader(b"Content-Type", _TEXT)
    _finish(request, f"{text}\n".encode())


def _tell_ready(request: Request, why_not: str) -> None:
    _tell(request, SERVICE_UNAVAILABLE if why_not else OK, why_not or "ready")


def _finish(request: Request, body: bytes) -> None:
    """Answers with a body that is short enough to be written at once."""
    if request.startedWriting or request._disconnected:
        return
    request.setHeader(b"Content-Length", str(len(body)).encode())
    if request.method != b"HEAD":
        request.write(body)
    request.finish()


@implementer(IPushProducer)
class _Chunks:
    """Writes a long answer, one chunk in each turn of the reactor, while the client reads."""

    def __init__(self, clock: Clock, request: Request, chunks: Sequence[bytes]) -> None:
        self._clock = clock
        self._request = request
        self._left = iter(chunks)
        self._is_paused = self.is_over = False
        request.setHeader(b"Content-Type", CONTENT_TYPE_LATEST.encode())
        request.setHeader(b"Content-Length", str(sum(map(len, chunks))).encode())
        request.registerProducer(self, True)
        self._write()

    def _write(self) -> None:
        if self._is_paused or self.is_over:
            return
        chunk = next(self._left, None)
        if chunk is None or self._request.method == b"HEAD":
            self._end()
            self._request.unregisterProducer()
            self._request.finish()
            return
        self._request.write(chunk)
        self._clock.later(0, self._write)

    def pauseProducing(self) -> None:
        """Pauses, because the client does not read."""
        self._is_paused = True

    def resumeProducing(self) -> None:
        """Continues, because the client has read."""
        if self._is_paused:
            self._is_paused = False
            self._write()

    def stopProducing(self) -> None:
        """Stops, because the client has gone."""
        self._end()

    def abort(self) -> None:
        """Ends the connection, unless all was written."""
        if not self.is_over:
            self._end()
            self._request.loseConnection()

    def _end(self) -> None:
        self.is_over, self._left = True, iter(())
