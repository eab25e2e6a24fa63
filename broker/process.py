# SPDX-License-Identifier: Apache-2.0
"""A broker as a process runs it, which is stopped and made anew when it asks for that.

A slave does when the end of its log is to be cut off: files are not cut while they are open.
Everything of the broker is made anew, from the settings as they are read then. With a controller,
this is also how a broker gets another role, or another master: the session with the controllers
lives on, and tells them that the broker lives, while the broker is made anew for its term.

Java: has no counterpart; BrokerStartup ends the process, and ReplicasManager changes roles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.controller.identity_file import IdentityFile
from txrocketmq.broker.controller.session import ControllerSession, InSync, Term
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.in_thread import at_once
from txrocketmq.broker.work.life import SECOND_MS, Life, Tick
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.lives import Lives
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.tls.renewed_context import own_contexts

log = Logger()


def _went(what: str, why: object) -> None:
    log.error("{what} has failed: {why}", what=what, why=why)


class BrokerProcess:
    """Runs the brokers that `make` makes, one after the other; `give_up` is called when one of them
    cannot be started.
    """

    def __init__(self, make: Callable[[], Broker], give_up: Callable[[], object]) -> None:
        self._make = make
        self._give_up = give_up
        self.broker = make()
        self._stopped: Deferred[None] | None = None
        """Fires when the broker that was made anew has started, or when all has stopped."""
        self._is_stopping = False
        self.has_failed = False
        """Whether a broker could not be started again."""

    @property
    def address(self) -> str:
        """The address that clients are given."""
        return self.broker.address

    def start(self) -> None:
        """Starts the broker. Raises what Broker.start raises."""
        self.broker.restart = self._restart
        self.broker.start()

    def _restart(self) -> None:
        if self._is_stopping or self._stopped is not None:
            return
        log.info("the broker stops, and starts again in this process")
        stopped = self._stopped = self._end()
        stopped.addCallback(self._start_again)

    def _end(self) -> Deferred[None]:
        """Stops the broker, which is to be made anew."""
        return self.broker.stop()

    def _start_again(self, _: None) -> None:
        self._stopped = None
        if self._is_stopping:
            return
        try:
            self.broker = self._make()
            self.start()
        except (ValueError, OSError, CannotListenError) as error:
            log.critical("the broker cannot start again: {error}", error=error)
            self.has_failed = self._is_stopping = True
            self._give_up()

    def stop(self) -> Deferred[None]:
        """Stops the broker; fires when that is done."""
        self._is_stopping, done = True, Deferred[None]()
        if self.has_failed:
            done.callback(None)
        elif self._stopped is not None:
            self._stopped.addBoth(done.callback)
        else:
            return self.broker.stop()
        return done


class ControlledProcess(BrokerProcess):
    """Runs a broker whose master a controller chooses; `make` makes one for a session."""

    def __init__(
        self,
        make: Callable[[ControllerSession], Broker],
        give_up: Callable[[], object],
        config: BrokerConfig,
        identity: IdentityFile,
        tls: TlsConfig,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or Clock()
        secured = own_contexts(tls) if config.use_tls else None
        self._connections = Connections(self._clock.unhurried, tls=secured)
        self._session = ControllerSession(
            config,
            identity,
            self._connections,
            self._clock.now_ms,
            on_term=self._heard_term,
            on_in_sync=self._heard_in_sync,
        )
        tick = Tick(SECOND_MS, lambda _, steady_ms: self._session.tick(steady_ms))
        self._lives = Lives(
            [Life("session with controllers", beats=(tick,))],
            self._clock,
            went=_went,
            in_thread=at_once,
        )
        super().__init__(partial(make, self._session), give_up)
        self._is_beginning = False

    def start(self) -> None:
        """Starts the broker, and at first the session. Raises what Broker.start raises."""
        super().start()
        if not self._is_beginning:
            self._is_beginning = True
            self._lives.begin()
            self._session.tick(self._clock.steady_ms())

    def _controlled(self) -> Controlled | None:
        """The broker's side of the session, unless the broker is being made anew."""
        return None if self._stopped is not None else self.broker.parts.controlled

    def _heard_term(self, term: Term) -> None:
        notices.term_begins(term.epoch, term.master_address, is_master=term.is_master)
        controlled = self._controlled()
        if controlled is not None and not controlled.fits(term):
            self._restart()

    def _heard_in_sync(self, found: InSync) -> None:
        controlled = self._controlled()
        if controlled is not None:
            controlled.heard_in_sync(found)

    def _end(self) -> Deferred[None]:
        return self.broker.stop(is_leaving=False)

    def stop(self) -> Deferred[None]:
        """Stops the broker, and then the session; fires when that is done."""
        return super().stop().addBoth(self._stop_session)

    def _stop_session(self, outcome: object) -> object:
        self._clock.stop()
        self._connections.close()
        return outcome
