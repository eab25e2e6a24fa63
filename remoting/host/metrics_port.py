# SPDX-License-Identifier: Apache-2.0
"""Opens the port for metrics if it is switched on, and imports what it needs only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings import open_ports
from txrocketmq.remoting.settings.metrics_config import PROM, exporter_type, labels_of

if TYPE_CHECKING:
    from txrocketmq.remoting.host.exporter import Collect

log = Logger()


class Settings(Protocol):
    """The settings that are needed here, which brokers and name servers have."""

    @property
    def bind_address(self) -> str: ...
    @property
    def metrics_exporter_type(self) -> str: ...
    @property
    def metrics_prom_exporter_port(self) -> int: ...
    @property
    def metrics_prom_exporter_host(self) -> str: ...
    @property
    def metrics_label(self) -> str: ...


class MetricsPort:
    """The port for metrics. `port` is the number it really has while it is open, else 0."""

    def __init__(self) -> None:
        self._exporter: Any = None
        self.port = 0

    def open(
        self,
        clock: Clock,
        settings: Settings,
        collecting: Callable[[Mapping[str, str]], Collect],
        why_not_ready: Callable[[], str] = str,
    ) -> None:
        """Listens if metrics are switched on.

        `collecting` is called with the labels that each metric is to have, and returns what
        collects them. Raises ConfigError for wrong settings, and OSError, whose text says what to
        do, if the port cannot be opened.
        """
        if exporter_type(settings.metrics_exporter_type) != PROM:
            return
        from txrocketmq.remoting.host.exporter import Exporter  # noqa: PLC0415

        collect = collecting(labels_of(settings.metrics_label))
        self._exporter = Exporter(clock, collect, why_not_ready)
        host = settings.metrics_prom_exporter_host or settings.bind_address
        number = settings.metrics_prom_exporter_port
        try:
            self.port = self._exporter.listen(number, host)
        except CannotListenError as error:
            raise OSError(
                f"cannot listen on port {number} of {host} for metrics: {error.socketError}."
                " Set another metricsPromExporterPort, or leave metricsExporterType out"
            ) from None
        log.info("metrics are at {host}:{port}", host=host, port=self.port)
        if warning := open_ports.of_metrics(host, self.port):
            log.warn("{warning}", warning=warning)

    def close(self) -> Deferred[Any] | None:
        """Stops listening; returns a Deferred that fires then, or None if the port was not open."""
        return None if self._exporter is None else self._exporter.stop()
