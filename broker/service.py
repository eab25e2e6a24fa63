# SPDX-License-Identifier: Apache-2.0
"""The broker: builds its parts, connects them, starts and stops them.

Counterpart of BrokerController, without its logic: each part gets the two or three things it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.broker.all_parts import all_parts
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.cluster.outer_api import (
    Identity,
    ask_another,
    ask_ha_info,
    ask_locks,
    ask_log_end,
)
from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.controller.session import ControllerSession
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.kernel.chosen import Kernel, chosen_kernel
from txrocketmq.broker.parts import KnownAs, Parts
from txrocketmq.broker.ports import Ports
from txrocketmq.broker.replication.rejoin import Rejoin, address_of_master
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.replication.own_records import OwnRecords
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.in_thread import Done, Work
from txrocketmq.broker.work.life import SlicedBeat, WalkBeat
from txrocketmq.broker.work.slices import Slices
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Life, Opening, Periodic
from txrocketmq.remoting.host.lives import Lives
from txrocketmq.remoting.host.threads import Threads
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.address import address_facing, address_of, host_bytes
from txrocketmq.remoting.transport.client import Connections, as_deferred
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.ha.client import HaClient
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.server import configured_serialize_type
from txrocketmq.remoting.transport.tls.renewed_context import own_contexts

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
            in_thread=self._read_ahead,
            write_in_thread=self._threads.run,
            walks=Walks(partial(self.clock.later, 0), self.clock.reactor.seconds),
            kernel=kernel(),
            controlled=None if session is None else Controlled(session, self.clock.steady_ms),
        )
        self._connections: Connections | None = None
        self._ha_client: HaClient | None = None
        self._failures = Failures(self.clock.unhurried)
        self._ports = Ports(self.parts, self.clock, self._tls, self._failures, self._disconnected)
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
            work_of=self._work_of,
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
        tls = own_contexts(self._tls) if config.use_tls else None
        self._connections = Connections(self.clock.unhurried, tls=tls, seal=parts.access.seal())
        self.lives = self._lives_of(all_parts(parts, self._journal))
        self.lives.load()
        self._open_store()
        form = configured_serialize_type()
        # No request finds the registries empty: nothing is read before this method has returned.
        try:
            self._ports.listen(form, self.lives.gauges(), self.why_not_ready)
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
        self._follow(self._connections)
        if parts.controlled is not None:
            parts.controlled.begin(self.address, partial(ask_ha_info, self._connections))
        identity = self._identity(ip)
        parts.registration.begin(
            self._connections, identity, self._threads.run_or_do, self.clock.steady_ms
        )
        self._join_group(self._connections, identity)

    def _open_store(self) -> None:
        """Opens the store, and what depends on it. Raises OSError, ValueError with advice."""
        parts = self.parts
        warnings = [file.warning for file in parts.files if file.warning]
        now_ms, steady_ms = self.clock.now_ms(), self.clock.steady_ms()
        try:
            # A slave may have messages of topics of which it has not heard yet.
            known = None if parts.store.config.is_slave else parts.topics.known()
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

    def _join_group(self, connections: Connections, identity: Identity) -> None:
        """Has the broker look after the others of its name."""
        parts = self.parts
        parts.members.begin(connections, identity)
        parts.acting.begin(partial(ask_ha_info, connections))
        parts.strict_locks.begin(partial(ask_locks, connections))
        parts.escape.begin(partial(ask_another, connections))
        parts.popped_elsewhere.begin(partial(ask_another, connections))
        parts.pre_online.begin(connections.invoke, identity)

    def _follow(self, connections: Connections) -> None:
        """Has a slave follow its master."""
        parts, slave = self.parts, self.parts.slave
        if slave is None:
            return
        client = self._ha_client = HaClient(self.clock.unhurried)
        rejoin = Rejoin(
            OwnRecords(parts.store.log_files),
            partial(address_of_master, slave),
            connections,
            parts.call_soon,
            self._cut if self._may_cut else None,
            parts.store.damaged_from,
        )
        slave.rejoin = lambda: as_deferred(rejoin.check())
        slave.begin(client.connect, partial(ask_log_end, connections))
        if self.parts.config_copy is not None:
            self.parts.config_copy.begin(connections.invoke)

    @property
    def _may_cut(self) -> bool:
        """Whether what only this slave has is cut off: with a controller, the master is right."""
        is_wanted = self.parts.store.config.ha_truncate or self.parts.controlled is not None
        return is_wanted and self.restart is not None

    def _cut(self, at: int) -> None:
        """Has the log cut by the next start, which comes at once. Raises OSError."""
        self.parts.store.order_cut(at, self.clock.now_ms())
        if self.restart is not None:
            self.clock.later(0, self.restart)

    def why_not_ready(self) -> str:
        """Why clients should not connect now, as a sentence; empty when they may."""
        if self.parts.controlled is not None and self.parts.controlled.term is None:
            return "no controller has said yet which broker is master"
        if not self.parts.registration.is_done:
            return "no name server has registered this broker yet"
        return self.parts.store.why_not_writeable()

    def _identity(self, ip: str) -> Identity:
        config = self.parts.config
        master, port = self.parts.master, self._ports.ha_port
        if port:
            if port != master.store.config.ha_listen_port:
                self.parts.configuration.update({"haListenPort": str(port)}, at_start=True)
            master.address = f"{config.broker_ip2 or ip}:{port}"
        return Identity(
            config.broker_cluster_name,
            config.broker_name,
            config.broker_id,
            self.address,
            master.address,
            config.broker_not_active_timeout_millis if config.enable_slave_acting_master else None,
        )

    def _work_of(self, beat: Periodic) -> Callable[[], object] | None:
        """What is done for beats that take many turns."""
        match beat:
            case SlicedBeat(work=work):
                clock = self.clock
                return Slices(work, clock.now_ms, clock.steady_ms, self.parts.call_soon).begin
            case WalkBeat():
                return partial(self._walk, beat)
        return None

    def _walk(self, beat: WalkBeat) -> None:
        steps = beat.steps(self.clock.now_ms(), self.clock.steady_ms())
        if steps is not None:
            if beat.because:
                steps = self._journal.attributed(steps, beat.because)
            self.parts.walks.run(steps, partial(self._failures.by_itself, beat.what))

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
        self.parts.registration.forget_changes()
        self.clock.stop()
        self._ports.metrics.close()
        if self._connections is not None:
            self._connections.close()
        if self.parts.slave is not None:
            self.parts.slave.stop()
        if self._ha_client is not None:
            self._ha_client.stop()

        def closed(_: Any) -> None:
            if late.active():
                late.cancel()
            # Else it never started, and the store is not ours.
            if self.parts.registration.name_servers is not None:
                now_ms = self.clock.now_ms()
                self.lives.stop(now_ms, notices.not_written, (OSError, StoreError))
            log.info("broker {name} has stopped", name=self.parts.config.broker_name)
            done.callback(None)

        read: Deferred[None] = Deferred()
        self.parts.patience.stop(lambda: read.callback(None))
        waiting = DeferredList(
            [self.server.stop(), self._ports.ha.stop(), read, *self._threads.running],
            consumeErrors=True,
        )

        def too_late() -> None:
            self._threads.do_here()
            waiting.cancel()

        late = self.clock.later(LAST_JOBS_MS, too_late)
        waiting.addBoth(closed)

    def _disconnected(self, peer: TcpPeer, steady_ms: int) -> None:
        with self._journal.because(f"the end of the connection of {peer.remote_address}"):
            self.lives.forget(peer, steady_ms)

    def _wake_soon(self) -> None:
        self.clock.later(0, self.parts.polling.run_woken)

    def _read_ahead(self, work: Work, done: Done) -> None:
        """Runs work in a thread, then `done` in the reactor's; a failure is logged."""

        def read(error: Exception | None) -> None:
            if error is not None:
                log.error("reading ahead failed: {error}", error=error)
            done(error)

        self._threads.run(work, read)
