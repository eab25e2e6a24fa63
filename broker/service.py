# SPDX-License-Identifier: Apache-2.0
"""The broker: builds its parts, connects them, starts and stops them.

Counterpart of BrokerController, without its logic: each part gets the two or three things it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.broker.all_parts import all_parts
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.controller.session import ControllerSession
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.kernel.chosen import Kernel, chosen_kernel
from txrocketmq.broker.membership import Membership
from txrocketmq.broker.parts import KnownAs, Parts
from txrocketmq.broker.ports import Ports
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import LongWork
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Life, Opening
from txrocketmq.remoting.host.lives import Lives
from txrocketmq.remoting.host.threads import Threads
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.address import address_facing, address_of, host_bytes
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.server import configured_serialize_type

LAST_JOBS_MS = 10_000
"""How long `stop` waits for work in threads, in ms."""

log = Logger()


class Broker:
    """One broker. `start` opens the store, listens and registers; `port` is then the real one."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: StoreConfig,
        clock: Clock | None = None,
        configuration: Configuration | None = None,
        tls: TlsConfig | None = None,
        kernel: Callable[[], Kernel | None] = chosen_kernel,
        session: ControllerSession | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self._tls = tls or TlsConfig()
        self._threads = Threads(self.clock)
        self.parts = Parts(
            configuration=configuration or Configuration((config, store_config), {}),
            clock=self.clock.now_ms,
            steady_clock=self.clock.steady_ms,
            wake_soon=self._wake_soon,
            call_soon=lambda call: self.clock.later(0, call),
            at_end_of_turn=self.clock.at_end_of_turn,
            later=self.clock.later,
            in_thread=self._threads.read_ahead,
            write_in_thread=self._threads.run,
            walks=Walks(partial(self.clock.later, 0), self.clock.reactor.seconds),
            kernel=kernel(),
            controlled=None if session is None else Controlled(session, self.clock.steady_ms),
        )
        self._failures = Failures(self.clock.unhurried)
        self._ports = Ports(self.parts, self.clock, self._tls, self._failures, self._disconnected)
        self.membership = Membership(self.parts, self.clock, self._threads)
        self.guards, self.server = self._ports.guards, self._ports.server
        self._journal = Journal(self.parts, self._ports.dispatchers)
        self.lives = self._lives_of([])
        """Those of the parts, from the start on."""
        self.restart: Callable[[], object] | None = None
        """Called when the broker is to be stopped and made anew; None where nobody does that."""

    def _lives_of(self, lives: list[Life]) -> Lives:
        return Lives(
            lives,
            self.clock,
            went=self._journal.went,
            in_thread=self._threads.run,
            work_of=LongWork(
                self.clock,
                self.parts.call_soon,
                self.parts.walks,
                self._failures.by_itself,
                self._journal.attributed,
            ).of,
        )

    @property
    def port(self) -> int:
        """The port that it listens on, once it has started."""
        return self._ports.port

    @property
    def address(self) -> str:
        """The address that clients are given, once the broker has started."""
        return self.parts.known_as.address

    # ------------------------------------------------------- start and stop

    def start(self) -> None:
        """Starts the broker. Raises OSError, ValueError, CannotListenError with advice."""
        parts = self.parts
        config = parts.config
        ip = config.broker_ip1 or address_facing(config.namesrv_addr)
        own_host = address_of(ip, "brokerIP1")
        self.server.encryption.prepare()
        self.membership.open_connections(self._tls)
        self.lives = self._lives_of(all_parts(parts, self._journal))
        self.lives.load()
        self._open_store()
        form = configured_serialize_type()
        # No request finds the registries empty: nothing is read before this method has returned.
        try:
            self._ports.listen(form, self.lives.gauges(), self.membership.why_not_ready)
        except (CannotListenError, OSError):
            parts.store.stop(self.clock.now_ms())
            raise
        # From here on these count as settings: remarks and answers to tools contain them.
        own = {} if config.broker_ip1 else {"brokerIP1": ip}
        own |= {} if config.broker_ip2 else {"brokerIP2": ip}
        if own:
            parts.configuration.update(own, at_start=True)
        told = config.advertised_port or self.port
        parts.known_as = KnownAs(f"{ip}:{told}", host_bytes(own_host, told))
        self._ports.use(Registry(*all_processors(parts, form)))
        # One thread is started now: when memory is short later, it would be too late.
        maybeDeferred(self.clock.in_thread, int).addErrback(
            lambda why: self._journal.went("starting a thread", why.getErrorMessage())
        )
        self.lives.begin()
        log.info(
            "broker {name} of {cluster} listens on {port} (VIP {vip}) and registers as {address}",
            name=config.broker_name,
            cluster=config.broker_cluster_name,
            port=self.port,
            vip=self._ports.vip_port,
            address=self.address,
        )
        kernel = parts.kernel.name if parts.kernel is not None else "Python"
        log.info("sends and pulls are read by {kernel} (see docs/kernel.md)", kernel=kernel)
        self.membership.begin(ip, self._ports.ha_port, self.restart)

    def _open_store(self) -> None:
        """Opens the store, and what depends on it. Raises OSError, ValueError with advice."""
        parts = self.parts
        warnings = [file.warning for file in parts.files if file.warning]
        now_ms, steady_ms = self.clock.now_ms(), self.clock.steady_ms()
        try:
            # A slave may have messages of topics of which it has not heard yet.
            known = parts.topics.known() if parts.role.writes else None
            recovered = parts.store.load(now_ms, steady_ms, known, parts.topics.has_batches)
        except StoreError as error:
            raise OSError(str(error)) from error
        if parts.controlled is not None:
            try:
                parts.controlled.opened()
            except (ValueError, OSError):
                parts.store.stop(now_ms)
                raise
        if recovered.cut_at is not None:
            parts.offsets.load()  # they were taken back to the end of the queues
        warnings += self.lives.open(Opening(now_ms, after_crash=not recovered.was_closed))
        notices.store_opened(parts.store.config.store_path_root_dir, recovered, warnings)

    def stop(self, *, is_leaving: bool = True) -> Deferred[None]:
        """Unregisters, stops listening, writes everything and closes the store, in this order.

        One that is not leaving, but made anew at once, stays registered, and sends nobody away.
        """
        done: Deferred[None] = Deferred()
        if self.parts.controlled is not None:
            self.parts.controlled.rest()
        close = partial(self._close, done)
        name_servers = self.parts.registration.name_servers
        if name_servers is None or not is_leaving:
            close()
        else:
            name_servers.unregister(partial(self.server.see_off, self.parts.config, close))
        return done

    def _close(self, done: Deferred[None]) -> None:
        self.clock.stop()
        self._ports.metrics.close()
        self.membership.stop()

        def closed(_: Any) -> None:
            # Else it never started, and the store is not ours.
            if self.parts.registration.name_servers is not None:
                now_ms = self.clock.now_ms()
                self.lives.stop(now_ms, notices.not_written, (OSError, StoreError))
            log.info("broker {name} has stopped", name=self.parts.config.broker_name)
            done.callback(None)

        read: Deferred[None] = Deferred()
        self.parts.patience.stop(lambda: read.callback(None))
        others = [self.server.stop(), self._ports.ha.stop(), read]
        self._threads.end(others, LAST_JOBS_MS).addBoth(closed)

    def _disconnected(self, peer: TcpPeer, steady_ms: int) -> None:
        with self._journal.because(f"the end of the connection of {peer.remote_address}"):
            self.lives.forget(peer, steady_ms)

    def _wake_soon(self) -> None:
        self.clock.later(0, self.parts.polling.run_woken)
