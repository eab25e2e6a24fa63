# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.remoting.settings import metrics_config
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.metrics_config import DISABLE, PROM, exporter_type, labels_of


@pytest.mark.parametrize(
    ("text", "name"),
    [("DISABLE", DISABLE), ("0", DISABLE), ("PROM", PROM), ("prom ", PROM), ("2", PROM)],
)
def test_types(text: str, name: str) -> None:
    assert exporter_type(text) == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "OTLP_GRPC",
            "metricsExporterType=OTLP_GRPC is not served; write ",
        ),
        ("1", "metricsExporterType=OTLP_GRPC is not served"),
        ("LOG", "metricsExporterType=LOG is not served"),
        ("prometheus", "metricsExporterType must be DISABLE or PROM, not 'prometheus'"),
    ],
)
def test_what_is_not_served_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^{why}"):
        exporter_type(text)


def test_without_its_package_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_config, "LIBRARY", "no_such_package_at_all")
    with pytest.raises(ConfigError, match="pip install 'txrocketmq.metrics.'"):
        exporter_type("PROM")
    assert exporter_type("DISABLE") == DISABLE


def test_labels() -> None:
    assert labels_of("") == {}
    assert labels_of(" instance_id:a-1 , uid:x:y,") == {"instance_id": "a-1", "uid": "x:y"}


@pytest.mark.parametrize("text", ["a", "a=b", "1a:b", "a b:c", "\u00e9:c"])
def test_labels_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="metricsLabel must be name:value"):
        labels_of(text)
