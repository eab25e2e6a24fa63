# SPDX-License-Identifier: Apache-2.0
"""A broker as a process runs it, which is stopped and made anew when it asks for that.

A slave does when the end of its log is to be cut off: files are not cut while they are open.
Everything of the broker is made anew, from the settings as they are read then.

Java: has no counterpart; BrokerStartup ends the process.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.broker.service import Broker

log = Logger()


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
        stopped = self._stopped = self.broker.stop()
        stopped.addCallback(self._start_again)

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
