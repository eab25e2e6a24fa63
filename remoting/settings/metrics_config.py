# SPDX-License-Identifier: Apache-2.0
"""The settings of a server's metrics: metricsExporterType and those that belong to it.

Java: MetricsExporterType, and the checks of BrokerMetricsManager.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from txrocketmq.remoting.settings.config_file import LARGEST_PORT, ConfigError, setting

DISABLE: Final = "DISABLE"
PROM: Final = "PROM"
_TYPES: Final = {"0": DISABLE, "1": "OTLP_GRPC", "2": PROM, "3": "LOG"}
"""What the original's numbers stand for, which it accepts in place of the names."""
LIBRARY: Final = "prometheus_client"


def exporter_type(text: str) -> str:
    """Returns DISABLE or PROM. Raises ConfigError for others, and for PROM without its package."""
    name = _TYPES.get(text.strip(), text.strip().upper())
    if name not in _TYPES.values():
        raise ConfigError(f"metricsExporterType must be {DISABLE} or {PROM}, not {text!r}")
    if name not in (DISABLE, PROM):
        raise ConfigError(
            f"metricsExporterType={name} is not served; write metricsExporterType={PROM}, which"
            " Prometheus and OpenTelemetry's collector read, or leave the key out"
        )
    if name == PROM and find_spec(LIBRARY) is None:
        raise ConfigError(
            "metricsExporterType=PROM needs the package prometheus-client:"
            " pip install 'txrocketmq[metrics]'"
        )
    return name


def labels_of(text: str) -> dict[str, str]:
    """Returns the labels of metricsLabel, "name:value,name:value". Raises ConfigError."""
    labels: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, value = part.partition(":")
        if not colon or not name.isidentifier() or not name.isascii():
            raise ConfigError(f"metricsLabel must be name:value,name:value, not {text!r}")
        labels[name] = value
    return labels


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """The settings of metrics, which name servers and brokers have."""

    metrics_exporter_type: str = setting("DISABLE")
    """DISABLE, or PROM, which opens a port with metrics for Prometheus, /health and /ready."""
    metrics_prom_exporter_port: int = setting(5_557, most=LARGEST_PORT)
    """The number of the port with the metrics."""
    metrics_prom_exporter_host: str = setting("")
    """The address on which the port for metrics listens; empty means the same as bindAddress."""
    metrics_label: str = setting("")
    """Labels that are added to each metric, as "name:value,name:value"."""

    def __post_init__(self) -> None:
        """Raises ConfigError if the settings cannot be used."""
        exporter_type(self.metrics_exporter_type)
        labels_of(self.metrics_label)
